package dashboard

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	"github.com/chromedp/chromedp/kb"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// All pages, while Jobs wait, run, fail and end, and a worker is lost.
func TestDashboard(t *testing.T) {
	s := open(t)
	s.Allow(20 * time.Minute)
	s.settle("team-a")
	s.StartManagerWithAPI("--worker-lost-timeout=15s", "--worker-probe-timeout=5s")
	d := s.serve()
	s.Visit(d.URL)
	s.Until("#empty", "No workers yet", "kubectl jobferry register")
	s.Gone(`nav a[href$="/queues"]`)
	s.looks("")
	s.Visit(d.base + "/jobs")
	s.Until("#empty", "No Jobs yet")
	s.Register("west", "east")
	t.Cleanup(s.Cluster("west").Proxy().Heal)
	t.Cleanup(s.Cluster("east").Proxy().Heal)

	s.submitAll()
	s.jobsPage(d)
	s.jobPages(d)
	s.submitMore()
	s.logOf(d)
	s.failedIndexes(d)
	s.losesWorker(d)
	s.usagePage(d)
	s.losesHub(d)
	s.forbidden()
	s.noJobferry()
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
	s.Submit("train", rigtest.Indexed(400), parallelism(3), rigtest.RunFor(9*time.Second))
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

// submitMore creates Jobs whose pages have more to show.
func (s *scene) submitMore() {
	s.t.Helper()
	s.Submit("partial", ferrytest.OnWorker("east"), rigtest.Indexed(6), rigtest.PodLabel(rig.LabelFailIndexes, "1_4"), rigtest.RunFor(time.Second), func(j *batchv1.Job) {
		j.Spec.BackoffLimitPerIndex, j.Spec.BackoffLimit = ptr.To[int32](0), ptr.To[int32](math.MaxInt32)
	})
	s.Submit("restarts", ferrytest.OnWorker("east"), rigtest.ExitCode(1), rigtest.RunFor(time.Second), rigtest.BackoffLimit(100), func(j *batchv1.Job) {
		j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	})
	s.Submit("stays", ferrytest.OnWorker("west"), rigtest.RunForever(), func(j *batchv1.Job) {
		j.Annotations[v1alpha1.AnnotationOnClusterLost] = v1alpha1.OnClusterLostWait
	})
	s.HubJobUntil("stays", rigtest.Running(1))
	s.HubJobUntil("partial", rigtest.Failed)
}

// logOf searches in a log, and chooses how it's shown. The address keeps that.
func (s *scene) logOf(d *served) {
	s.t.Helper()
	s.Visit(d.base + "/jobs/" + s.NS + "/evaluate")
	s.Until("#command", "kubectl jobferry describe evaluate -n team-a", "--context prod")
	s.copies(".title .copy")
	s.Until("#pods", "evaluate-", "Running")
	s.Script(`document.querySelector("#pods a").click()`, nil)
	s.Until("#log-lines", "line ")
	s.Until("#log-command", "kubectl jobferry logs evaluate -n team-a --pod evaluate-", "-c main -f")
	s.Press("/", "l", "i", "n", "e")
	s.Is(`document.activeElement.id == "find-text"`)
	s.Until("#find-count", "1 of ")
	s.Press(kb.Enter)
	s.Until("#find-count", "2 of ")
	s.Is(`CSS.highlights.get("match").size > 1 && CSS.highlights.get("current").size == 1`)
	s.Script(`document.getElementById("find-previous").click()`, nil)
	s.Until("#find-count", "1 of ")
	s.Press("!")
	s.Until("#find-count", "no match")
	s.Script(`document.getElementById("log-timestamps").click()`, nil)
	s.Is(`/^\d{4}-\d\d-\d\dT\S+ \w/.test(document.getElementById("log-lines").textContent)`)
	s.Until("#log-command", "--timestamps")

	// What is above goes with the next version of the page: the focus stays.
	s.Script(`document.getElementById("log").before(Object.assign(document.createElement("p"), { className: "gone" }))`, nil)
	s.Script(`document.getElementById("find-text").focus()`, nil)
	s.Script(`follow()`, nil)
	s.Gone(".gone")
	s.Is(`document.activeElement.id == "find-text"`)
	s.Script(`document.getElementById("log-wrap").click()`, nil)
	s.Is(`getComputedStyle(document.getElementById("log-lines")).whiteSpaceCollapse == "preserve" && document.querySelector(".log.nowrap")`)
	s.Reload()
	s.Is(`document.querySelector(".log.nowrap") && /^\d{4}-/.test(document.getElementById("log-lines").textContent)`)
	s.looks("")
	s.Gone("#log-previous")
	var file string
	s.Script(`fetch(document.getElementById("log-download").href).then(async (r) => r.headers.get("Content-Disposition") + await r.text())`, &file)
	if !strings.HasPrefix(file, "attachment; filename=evaluate-") || !strings.Contains(file, "-main.log") || !strings.Contains(file, " line 2\n") {
		s.t.Errorf("the downloaded log is %q", file)
	}
	s.longLines()
	s.Script(`document.getElementById("close-log").click()`, nil)
	s.Is(`location.search == "" && !document.getElementById("log")`)

	// The containers of the rig have no log of their previous run.
	s.Expect("400 (Bad Request)")
	s.Visit(d.base + "/jobs/" + s.NS + "/restarts")
	s.Until("#pods", "restarts-")
	s.Script(`document.querySelector("#pods a").click()`, nil)
	s.Is(`document.getElementById("log-previous")`)
	s.Script(`document.getElementById("log-previous").click()`, nil)
	s.Until("#log-state", "previous terminated container")
	s.Until("#log-command", "--previous")
}

// longLines adds to a log more characters than are kept, in one line and in several.
func (s *scene) longLines() {
	s.t.Helper()
	for line, want := range map[string]string{"x": "x", `x\n`: `x\n`, "a" + strings.Repeat("x", 999) + `\n`: "a" + strings.Repeat("x", 999) + `\n`} {
		var problem string
		s.Script(fmt.Sprintf(`(() => {
			const lines = document.createElement("pre"), chunk = "%s".repeat(1e6 / "%[1]s".length);
			for (let i = 0; i < 10; i++) append(lines, chunk);
			const text = lines.textContent;
			return text && text.length <= 2 * maxCharacters && text.startsWith("%s") ? "" : text.length + ": " + text.slice(0, 20);
		})()`, line, want), &problem)
		if problem != "" {
			s.t.Errorf("of %.10q, the page keeps %s", line, problem)
		}
	}
}

// copies presses a button that copies something, as browsers allow only a user to do.
func (s *scene) copies(button string) {
	s.t.Helper()
	s.Script(fmt.Sprintf(`document.querySelector(%q).focus()`, button), nil)
	s.Press(kb.Enter)
	s.Until(button, "Copied")
}

// failedIndexes are named, and lead to their logs, as the map does.
func (s *scene) failedIndexes(d *served) {
	s.t.Helper()
	s.Visit(d.base + "/jobs/" + s.NS + "/partial")
	s.Until(".notice", "FailedIndexes")
	s.Until("#failed-indexes", "Failed indexes: 1, 4")
	s.looks("")
	s.Script(`document.querySelector("#failed-indexes a").click()`, nil)
	s.Until("#log-lines", "started, index 1", "ended with exit code 1")
	s.Is(`location.search == "?index=1"`)
	s.Is(`document.querySelector(".map").dataset.drawn`)
	s.Script(`document.querySelector(".map canvas").focus()`, nil)
	s.Press(kb.End, kb.ArrowLeft, kb.Enter)
	s.Until("#log-lines", "started, index 4")
	s.Script(`{
		const canvas = document.querySelector(".map canvas"), box = canvas.getBoundingClientRect();
		canvas.dispatchEvent(new MouseEvent("click", { bubbles: true, clientX: box.left + 2, clientY: box.top + 2 }));
	}`, nil)
	s.Until("#log-lines", "started, index 0")
	s.Visit(d.base + "/jobs/" + s.NS + "/train?index=399")
	s.Until("#log", "Log of index 399", "There is no Pod of this index now.")
	s.looks("")
}

// jobPages look at Jobs one by one.
func (s *scene) jobPages(d *served) {
	s.t.Helper()
	s.Visit(d.base + "/jobs/" + s.NS + "/huge")
	s.Until("#why", "100", "never", "west", "east")
	s.Is(`!document.getElementById("why").innerText.includes("clusters available")`) // it's above
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
	s.Is(`!document.querySelector("#events table").innerText.includes("pod/")`) // the Job's own
	s.Script(`document.getElementById("events-all").click()`, nil)
	s.Until("#events table", "pod/train-", "Moved from worker west to worker east")
	s.Script(`document.getElementById("events-warnings").click()`, nil)
	s.Is(`[...document.querySelectorAll("#events tbody tr")].every((row) => row.querySelector(".state.warn"))`)
	s.Is(`location.search == "?events=warnings" && document.querySelector("#events-warnings[aria-current]")`)
	s.Script(`document.getElementById("events-job").click()`, nil)
	s.Is(`[...document.querySelectorAll(".lane svg[aria-label]")].some((lane) => lane.ariaLabel.startsWith("east: ") && lane.ariaLabel.includes("Running"))`)
	s.Is(`/running\s+[1-9]/.test(document.querySelector("#indexes .legend").innerText)`)
	s.Until("#indexes table", "east")
	s.looks("job-moved")

	s.WorkerUntil("west", func(w *v1alpha1.WorkerCluster) bool {
		return meta.IsStatusConditionTrue(w.Status.Conditions, v1alpha1.ConditionLost)
	})
	s.Visit(d.base + "/")
	s.Until("#worker-west", "Lost", "the others have moved", "Not ready for", "its last answer is", "As of")
	s.Until("#worker-east", "Ready", "of 32", "unfinished")
	s.Is(`!document.getElementById("worker-east").innerText.includes("As of")`)
	s.Is(`document.querySelector(".card").id == "worker-west"`)
	s.looks("workers")
	s.Dark(true)
	s.picture("workers-dark")
	s.Dark(false)

	s.workerPages(d)
	s.Visit(d.base + "/jobs?q=stays")
	s.Until("tbody", "OutOfTouch", "last seen")
	s.looks("")
	s.Visit(d.base + "/jobs/" + s.NS + "/stays")
	s.Until(".facts", "last seen")

	// The way by keyboard alone: past the link to the content, to the list of Jobs.
	s.Visit(d.base + "/")
	s.Press(kb.Tab, kb.Tab, kb.Tab, kb.Tab, kb.Enter)
	s.Is(`location.pathname.split("/").slice(2).join("/") == "jobs"`)
}

// workerPages look at a worker that is lost, and at one that is drained.
func (s *scene) workerPages(d *served) {
	s.t.Helper()
	s.Visit(d.base + "/")
	s.Script(`document.querySelector("#worker-west h2 a").click()`, nil)
	s.Until("#capacity", "as of", "of 24")
	s.Until("#conditions", "Lost", "Ready", "False", "Unreachable")
	s.Until("#jobs", "stays", "OutOfTouch")
	s.Until("#commands", "kubectl jobferry drain west --context prod", "kubectl jobferry rotate west --worker-context CONTEXT", "kubectl jobferry cordon west")
	s.Until("#token", "None that the manager renews") // it has a certificate
	s.looks("worker")
	s.copies("#commands .copy")

	s.SetWorker("east", `{"cordoned":true}`)
	s.Visit(d.base + "/workers/east")
	s.Until(".title", "Cordoned")
	s.Until("#commands", "kubectl jobferry uncordon east")
	s.Is(`!document.getElementById("capacity").innerText.includes("as of")`)
	s.Script(`document.querySelector("#jobs #sort-name").click()`, nil)
	s.Is(`location.search == "?sort=name" && document.querySelector("#jobs tbody th").innerText < "f"`)
	s.looks("")
	s.SetWorker("east", `{"cordoned":false}`)
	s.Expect("404 (Not Found)")
	s.Visit(d.base + "/workers/north")
	s.Until("#noworker", "There is no such worker")
}

// usagePage shows what Jobs used in both workers, and what that costs in one of them.
func (s *scene) usagePage(d *served) {
	s.t.Helper()
	s.SetWorker("east", `{"cost":{"cpu":"0.04"}}`)
	s.Visit(d.base + "/usage")
	s.Until("#usage-namespaces", s.NS, "cpu (CPU-hours)", "pods (hours)", "Cost")
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

// noJobferry looks at a cluster that isn't a hub, as with a wrong context: as an admin, and as a
// user whom it refuses what it doesn't have.
func (s *scene) noJobferry() {
	s.t.Helper()
	nobody, err := s.Cluster("east").UserKubeconfigBytes("nobody")
	s.check(err)
	for _, kubeconfig := range [][]byte{s.Cluster("east").ProxyKubeconfigBytes(), nobody} {
		d := s.start(kubeconfig)
		s.Visit(d.URL)
		for _, page := range []string{"/", "/jobs", "/jobs/team-a/train", "/usage"} {
			s.Visit(d.base + page)
			s.Until("#nojobferry", "This cluster has no Jobferry", "prod", "kubectl config get-contexts")
			s.Until("#health", "No Jobferry")
		}
		s.looks("")
	}
}
