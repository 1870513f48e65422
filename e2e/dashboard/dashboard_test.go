package dashboard

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/chromedp/chromedp/kb"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// All pages, while Jobs wait, run, fail and end, and a worker is lost.
func TestDashboard(t *testing.T) {
	s := open(t)
	s.settle("team-a")
	s.StartManagerWithAPI("--worker-lost-timeout=15s", "--worker-probe-timeout=5s")
	d := s.serve()
	s.Visit(d.URL)
	s.Until("#empty", "No workers yet", "kubectl jobferry register")
	s.looks("")
	s.Visit(d.base + "/jobs")
	s.Until("#empty", "No Jobs yet")
	s.Register("west", "east")
	t.Cleanup(s.Cluster("west").Proxy().Heal)
	t.Cleanup(s.Cluster("east").Proxy().Heal)

	s.submitAll()
	s.jobsPage(d)
	s.jobPages(d)
	s.losesWorker(d)
	s.usagePage(d)
	s.losesHub(d)
	s.forbidden()
}

// submitAll creates a Job of each kind, and waits until they are where the pages are to show them.
func (s *scene) submitAll() {
	s.t.Helper()
	s.Submit("preprocess", ferrytest.OnWorker("east"), rigtest.Parallel(2), rigtest.RunFor(time.Second))
	s.Submit("huge", requests("cpu", "100"))
	s.Submit("flaky", ferrytest.OnWorker("east"), rigtest.ExitCode(1), rigtest.BackoffLimit(0), rigtest.RunFor(time.Second))
	s.Submit("nightly", rigtest.Suspended())
	s.Submit("evaluate", ferrytest.OnWorker("east"), rigtest.RunForever(), requests("cpu", "4"))
	s.SetWorker("east", `{"cordoned":true}`)
	s.WorkerUntil("east", func(w *v1alpha1.WorkerCluster) bool { return w.Spec.Cordoned && !ferrytest.Ready(w) })
	// for longer than the test may take: it's to move
	s.Submit("train", rigtest.Indexed(400), parallelism(3), rigtest.RunFor(5*time.Second))
	s.HubJobUntil("train", ferrytest.IsAt("west"))
	s.SetWorker("east", `{"cordoned":false}`)
	s.Submit("sweep", rigtest.Indexed(400), parallelism(40), rigtest.RunFor(6*time.Second), requests("cpu", "1"), func(j *batchv1.Job) {
		j.Annotations[v1alpha1.AnnotationMaxClusters] = v1alpha1.MaxClustersAll
	})
	s.HubJobUntil("preprocess", rigtest.Complete)
	s.HubJobUntil("flaky", rigtest.Failed)
	s.HubJobUntil("evaluate", rigtest.Running(1))
	s.HubJobUntil("train", func(j *batchv1.Job) bool { return j.Status.Succeeded >= 3 })
}

// jobsPage searches and filters, by mouse and keyboard; the address keeps it.
func (s *scene) jobsPage(d *served) {
	s.t.Helper()
	s.Until("#page", "train", "Running", "huge", "Pending", "Insufficient cpu", "flaky", "BackoffLimitExceeded", "nightly", "Suspended")
	s.looks("jobs")
	s.Window(360, 740)
	s.Dark(true)
	s.picture("jobs-phone")
	s.Dark(false)
	s.Window(1280, 800)

	s.Press("/", "t", "r", "a", "i", "n")
	s.Until("#matching", "1 of 7")
	s.Is(`document.activeElement.id == "q" && location.search == "?q=train"`)
	s.Reload()
	s.Until("#matching", "1 of 7")
	s.Is(`document.getElementById("q").value == "train"`)
	s.Visit(d.base + "/jobs")
	s.Script(`document.getElementById("state-Pending").click()`, nil)
	s.Until("#matching", "1 of 7")
	s.Is(`location.search == "?state=Pending" && document.querySelector("tbody tr").id.endsWith("/huge")`)
	s.Back()
	s.Until("#matching", "7")
	s.Gone("#state-Pending[aria-current]")
	s.Visit(d.base + "/jobs?worker=east&q=flaky")
	s.Until("#matching", "1 of 7")
	s.Is(`document.getElementById("worker").value == "east"`)
	s.Visit(d.base + "/jobs?q=nothing")
	s.Until("#nomatch", "No Job matches")
	s.looks("")
}

// jobPages look at Jobs one by one.
func (s *scene) jobPages(d *served) {
	s.t.Helper()
	s.Visit(d.base + "/jobs/" + s.NS + "/huge")
	s.Until("#why", "100", "never", "west", "east")
	s.Until("#timeline", "Waiting")
	s.looks("job-waits")

	s.Visit(d.base + "/jobs/" + s.NS + "/evaluate")
	s.Until("#pods", "evaluate-", "Running")
	s.Script(`document.querySelector("#pods a").focus()`, nil)
	s.Press(kb.Enter)
	s.Until("#log-lines", "started")
	s.Until("#log-state", "Following")
	s.Reload()
	s.Until("#log-lines", "started")
	s.looks("job-log")
	s.Script(`document.getElementById("close-log").click()`, nil)
	s.Gone("#log")

	s.Visit(d.base + "/jobs/" + s.NS + "/sweep")
	s.Is(`document.querySelector(".map").dataset.drawn`)
	s.Until("#indexes", "400", "completed", "west", "east")
	s.Script(`document.querySelector(".map canvas").focus()`, nil)
	s.Press(kb.End)
	s.Until("#index-readout", "Index 399: ")
	s.Press(kb.ArrowLeft, kb.Home)
	s.Until("#index-readout", "Index 0: ")
	s.Until("#indexes .legend", "completed")
	s.HubJobUntil("sweep", func(j *batchv1.Job) bool { return j.Status.Succeeded >= 150 })
	s.looks("job-sweep")
	s.Script(`document.getElementById("by-worker").click()`, nil)
	s.Is(`document.querySelector(".map").dataset.by == "worker"`)
	s.Reload()
	s.Is(`document.querySelector(".map").dataset.by == "worker"`)
}

// losesWorker cuts a worker off while a Job runs there: the page of the Job shows its move.
func (s *scene) losesWorker(d *served) {
	s.t.Helper()
	s.Visit(d.base + "/jobs/" + s.NS + "/train")
	s.Until("#timeline", "west", "Running")
	s.Cluster("west").Proxy().BlackHole()
	s.Until("#timeline", "east")
	s.HubJobUntil("train", rigtest.Running(3))
	s.Until("#events", "Moved from worker west to worker east", "Placed on worker west")
	s.Is(`[...document.querySelectorAll(".lane svg[aria-label]")].some((lane) => lane.ariaLabel.startsWith("east: ") && lane.ariaLabel.includes("Running"))`)
	s.Is(`/running\s+[1-9]/.test(document.querySelector("#indexes .legend").innerText)`)
	s.Until("#indexes table", "east")
	s.looks("job-moved")

	s.WorkerUntil("west", func(w *v1alpha1.WorkerCluster) bool {
		return meta.IsStatusConditionTrue(w.Status.Conditions, v1alpha1.ConditionLost)
	})
	s.Visit(d.base + "/")
	s.Until("#worker-west", "Lost", "its Jobs continue elsewhere", "Not ready for", "its last answer is")
	s.Until("#worker-east", "Ready", "of 32", "unfinished")
	s.Is(`document.querySelector(".card").id == "worker-west"`)
	s.looks("workers")
	s.Dark(true)
	s.picture("workers-dark")
	s.Dark(false)

	// The way by keyboard alone: past the link to the content, to the list of Jobs.
	s.Visit(d.base + "/")
	s.Press(kb.Tab, kb.Tab, kb.Tab, kb.Tab, kb.Enter)
	s.Is(`location.pathname.split("/").slice(2).join("/") == "jobs"`)
}

// usagePage shows what Jobs used in both workers, and what that costs in one of them.
func (s *scene) usagePage(d *served) {
	s.t.Helper()
	s.SetWorker("east", `{"cost":{"cpu":"0.04"}}`)
	s.Visit(d.base + "/usage")
	s.Until("#usage-namespaces", s.NS, "cpu", "pods", "Cost")
	s.Until("#usage-workers", "east", "west", "All")
	s.Until("#usage-jobs", "evaluate", "sweep", "train")
	s.Is(`location.search == "" && document.querySelector("#since-7d[aria-current]")`)
	s.looks("usage")
	s.Script(`document.getElementById("since-24h").click()`, nil)
	s.Is(`location.search == "?since=24h" && document.querySelector("#since-24h[aria-current]")`)
	s.Visit(d.base + "/jobs/" + s.NS + "/train")
	s.Until("#usage", "west", "east", "pods")
}

// losesHub cuts the dashboard off from the hub, and ends the dashboard.
func (s *scene) losesHub(d *served) {
	s.t.Helper()
	s.t.Cleanup(s.Hub.Proxy().Heal)
	s.Hub.Proxy().Reset()
	s.Until("#disconnected", "The hub doesn't answer", "What you see is what was known then")
	s.Until("#page", "train")
	s.looks("")
	s.Hub.Proxy().Heal()
	s.Gone("#disconnected")
	s.Until("#health", "Live")
	s.Expect("ERR_CONNECTION_REFUSED")
	s.Expect("ERR_INCOMPLETE_CHUNKED_ENCODING")
	s.Expect("ERR_EMPTY_RESPONSE")
	s.check(stop(d.cmd))
	s.Until("#stopped", "The dashboard doesn't answer")
	s.Is(`!document.getElementById("stopped").hidden`)
}

// viewer may see the Jobs of a namespace, and nothing else.
const viewer = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: viewer}
rules:
- {apiGroups: [batch], resources: [jobs], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: viewer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: viewer}
subjects: [{kind: User, name: viewer, apiGroup: rbac.authorization.k8s.io}]
`

// forbidden looks at the pages of users with fewer rights.
func (s *scene) forbidden() {
	s.t.Helper()
	s.Apply(s.Hub, s.NS, viewer)
	d := s.serveFor("viewer")
	s.Visit(d.URL)
	s.Until("#forbidden", "You may not see this", "its workers")
	s.looks("")
	s.Visit(d.base + "/jobs")
	s.Until("#page", "train", "Something is missing", "events")
	s.Visit(d.base + "/jobs/" + s.NS + "/train")
	s.Until("#pods", "Not all could be read", "role view")
	s.Visit(d.base + "/usage")
	s.Until("#page", "Something is missing", "prices of the workers", "train")

	d = s.serveFor("nobody")
	s.Visit(d.URL)
	s.Visit(d.base + "/jobs")
	s.Until("#forbidden", "You may not see this", "kubectl jobferry dashboard -n NAMESPACE")
}
