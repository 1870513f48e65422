package plugin

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// A name that isn't there is said to be missing, and where to look, whatever the command.
func TestNoSuchJob(t *testing.T) {
	h := newHub(t)
	h.refuse("/apis/batch/v1/namespaces/team-a/jobs/nope", http.StatusNotFound, metav1.StatusReasonNotFound, `jobs.batch "nope" not found`, nil)
	for _, args := range []string{
		"jobs nope", "describe nope", "why nope", "pods nope", "logs nope", "logs nope -f", "logs nope --all-pods", "events nope", "exec nope -- ls",
		"attach nope", "port-forward nope 80", "cp nope:/a b", "cp words_test.go nope:/a", "move nope --to west",
	} {
		want := said{err: "error: there is no Job nope in namespace team-a\n  kubectl jobferry jobs -A lists the Jobs of all namespaces; -n selects another one\n", code: exitFailed}
		if got := h.run(strings.Fields(args)...); got != want {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

// The same holds for a user who may read what belongs to a Job, but not the Job.
func TestNoSuchJobForWhoMayNotReadJobs(t *testing.T) {
	h := newHub(t)
	h.refuse(jobPath, http.StatusForbidden, metav1.StatusReasonForbidden, "no", nil)
	h.says(0, []string{"log of \n"}, "logs", "shards")
	gone := &metav1.StatusDetails{Group: "batch", Kind: "jobs", Name: "shards"}
	h.refuse(subPath+"log", http.StatusNotFound, metav1.StatusReasonNotFound, `jobs.batch "shards" not found`, gone)
	h.refuse(subPath+"why", http.StatusNotFound, metav1.StatusReasonNotFound, `jobs.batch "shards" not found`, gone)
	for _, verb := range []string{"logs", "why"} {
		h.says(exitFailed, []string{"error: there is no Job shards in namespace team-a\n"}, verb, "shards")
	}
}

// Who names a Pod learns of which Job it is.
func TestAPodIsNoJob(t *testing.T) {
	h := newHub(t)
	for _, name := range []string{"shards-x7k2p", "shards-3-x7k2p"} {
		h.refuse("/apis/batch/v1/namespaces/team-a/jobs/"+name, http.StatusNotFound, metav1.StatusReasonNotFound, "not found", nil)
		h.refuse("/apis/batch/v1/namespaces/team-a/jobs/shards-3", http.StatusNotFound, metav1.StatusReasonNotFound, "not found", nil)
		for _, asked := range []string{name, "pod/" + name} {
			want := said{err: "error: there is no Job " + asked + " in namespace team-a\n" +
				"  for the Pod of a Job, name the Job, and the Pod by --pod: kubectl jobferry logs shards --pod " + name + "\n", code: exitFailed}
			if got := h.run("logs", asked); got != want {
				t.Errorf("%s: %+v", asked, got)
			}
		}
	}
}

// A cluster without Jobferry is no hub without Jobs.
func TestJobsWithoutJobferry(t *testing.T) {
	h := newHub(t)
	h.answers["/apis/batch/v1/namespaces/team-a/jobs"] = &batchv1.JobList{Items: []batchv1.Job{notOurs()}}
	h.refuse("/apis/jobferry.dev/v1alpha1/workerclusters", http.StatusNotFound, metav1.StatusReasonNotFound,
		"the server could not find the requested resource", &metav1.StatusDetails{Group: "jobferry.dev", Kind: "workerclusters"})
	got := h.run("jobs")
	if got.code != 0 || !strings.Contains(got.err, "is it the right context, and is Jobferry installed there?") || strings.Contains(got.err, "dispatched") {
		t.Errorf("%+v", got)
	}
}

func TestNoSuchWorker(t *testing.T) {
	h := newHub(t)
	h.answers["/api/v1/namespaces/kube-system"] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "hub"}}
	h.refuse("/apis/jobferry.dev/v1alpha1/workerclusters/wset", http.StatusNotFound, metav1.StatusReasonNotFound, "not found", &metav1.StatusDetails{Name: "wset"})
	h.refuse("/api/v1/namespaces/jobferry-system/secrets/wset", http.StatusNotFound, metav1.StatusReasonNotFound, "not found", nil)
	for _, args := range []string{
		"jobs --worker wset", "top --worker wset", "clusters wset", "cordon wset", "drain wset", "rotate wset", "unregister wset --yes",
		"move shards --to wset",
	} {
		got := h.run(strings.Fields(args)...)
		if got.code != exitFailed || !strings.HasSuffix(got.err, "error: there is no WorkerCluster wset\n  the hub has east, west: kubectl jobferry clusters shows them\n") {
			t.Errorf("%s: %+v", args, got)
		}
	}
	h.answers["/apis/jobferry.dev/v1alpha1/workerclusters"] = &v1alpha1.WorkerClusterList{}
	h.says(exitFailed, []string{"the hub has none: kubectl jobferry register --help"}, "cordon", "wset")
	h.refuse("/apis/jobferry.dev/v1alpha1/workerclusters", http.StatusForbidden, metav1.StatusReasonForbidden, "no", nil)
	h.says(exitFailed, []string{"error: there is no WorkerCluster wset\n"}, "cordon", "wset")
	h.says(0, []string{"No Jobs of Jobferry found in namespace team-a."}, "jobs", "--worker", "wset")
}

// What a session is refused with are the manager's words.
func TestSessionsSayWhatTheManagerSays(t *testing.T) {
	h := newHub(t)
	h.session = refusal(http.StatusConflict, metav1.StatusReasonConflict, `Job "shards" isn't placed on a worker yet`, nil)
	for _, args := range []string{"exec shards -- ls", "attach shards", "cp shards:/a b", "cp words_test.go shards:/a", "port-forward shards :80"} {
		got := h.run(strings.Fields(args)...)
		if got.code != exitFailed || strings.Contains(got.err, "upgrade") || !strings.Contains(got.err, `: Job "shards" isn't placed on a worker yet`) {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

// Of several containers, kubectl's default is taken, and told as kubectl does.
func TestDefaultContainer(t *testing.T) {
	h, job := newHub(t), hubJob()
	job.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "fetch"}}
	job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main"}, {Name: "proxy"}}
	h.answers[jobPath] = job
	const told = "Defaulted container \"main\" out of: main, proxy, fetch (init)\n"
	for args, want := range map[string]said{
		"logs shards":            {out: "log of container=main\n", err: told},
		"logs shards -c proxy":   {out: "log of container=proxy\n"},
		"logs shards --prefix":   {out: "[pod/shards-1/main] log of container=main&pod=shards-1&worker=west\n", err: told},
		"exec shards -- ls":      {out: "asked: command=ls&container=main&stderr=true&stdout=true\n", err: told + "trouble\n", code: 7},
		"exec shards -q -- ls":   {out: "asked: command=ls&container=main&stderr=true&stdout=true\n", err: "trouble\n", code: 7},
		"exec shards -c a -- ls": {out: "asked: command=ls&container=a&stderr=true&stdout=true\n", err: "trouble\n", code: 7},
		"attach shards":          {out: "asked: container=main&stderr=true&stdout=true\n", err: told + "trouble\n", code: 7},
	} {
		if got := h.run(strings.Fields(args)...); got != want {
			t.Errorf("%s: %+v, want %+v", args, got, want)
		}
	}
	job.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/default-container": "proxy"}
	if got, want := h.run("logs", "shards"), (said{out: "log of container=proxy\n"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// With -f, logs waits for the Pods of a Job that waits, and says for what.
func TestLogsFollowAJobThatWaits(t *testing.T) {
	const waits = `Job "shards" isn't placed on a worker yet: kubectl jobferry why shards -n team-a says what it waits for`
	notYet := refusal(http.StatusConflict, metav1.StatusReasonConflict, waits, nil)
	noPod := refusal(http.StatusNotFound, metav1.StatusReasonNotFound, `Job "shards" has no Pod in worker "west"`, nil)
	h := newHub(t)
	h.answers[subPath+"log"] = inTurn(notYet, notYet, noPod, "started\n")
	want := said{out: "started\n", err: "waiting: " + waits + "\nwaiting: Job \"shards\" has no Pod in worker \"west\"\n"}
	if got := h.run("logs", "shards", "-f"); got != want {
		t.Errorf("%+v", got)
	}
	h.answers[subPath+"pods"] = inTurn(notYet, &corev1.PodList{}, &corev1.PodList{Items: []corev1.Pod{pod(0)}})
	h.answers[subPath+"log"] = func(url.Values) string { return "started\n" }
	want = said{out: "[pod/shards-0/main] started\n", err: "waiting: " + waits + "\nwaiting: the Job has no Pods now\n"}
	if got := h.run("logs", "shards", "-f", "--all-pods"); got != want {
		t.Errorf("%+v", got)
	}
	// One that has ended gets no Pods any more.
	done := hubJob()
	done.Status.Conditions = append(done.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue})
	h.answers[jobPath] = done
	h.answers[subPath+"pods"], h.answers[subPath+"log"] = &corev1.PodList{}, noPod
	h.says(exitFailed, []string{"error: Job \"shards\" has no Pod"}, "logs", "shards", "-f")
	h.says(0, []string{"The Job shards has no Pods now."}, "logs", "shards", "-f", "--all-pods")
	h.says(exitFailed, []string{"error: Job \"shards\" has no Pod"}, "logs", "shards", "-f", "--pod", "nope")
}

// inTurn answers one after the other, and then with the last.
func inTurn(answers ...any) http.Handler {
	var hub fakeHub
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := answers[0]
		answers = answers[min(1, len(answers)-1):]
		if text, is := answer.(string); is {
			answer = func(url.Values) string { return text }
		}
		hub.answer(w, r, answer)
	})
}

// Without the worker, events shows those of the hub, and says what is missing.
func TestEventsWithoutTheWorker(t *testing.T) {
	h := newHub(t)
	h.refuse(subPath+"events", http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, `worker "west" is out of touch since noon`, nil)
	got := h.run("events", "shards")
	if got.code != exitFailed || !strings.Contains(got.out, "hub    job/shards") ||
		got.err != "warning: worker \"west\" is out of touch since noon\nerror: not all events of the Job shards could be read\n" {
		t.Errorf("%+v", got)
	}
	for _, reason := range []metav1.StatusReason{metav1.StatusReasonNotFound, metav1.StatusReasonConflict} { // it isn't there any more, or yet
		code := map[metav1.StatusReason]int32{metav1.StatusReasonNotFound: 404, metav1.StatusReasonConflict: 409}[reason]
		h.refuse(subPath+"events", code, reason, "no mirror", nil)
		if got := h.run("events", "shards"); got.code != 0 || got.err != "" || !strings.Contains(got.out, "hub    job/shards") {
			t.Errorf("%+v", got)
		}
	}
}

// What hub and workers are asked for, they are asked at the same time: here each waits for the
// other two.
func TestHubAndWorkersAreAskedAtOnce(t *testing.T) {
	h := newHub(t)
	arrived := make(chan string, 3)
	all := make(chan struct{})
	for _, path := range []string{"/api/v1/namespaces/team-a/events", subPath + "events", subPath + "mirror"} {
		answer := h.answers[path]
		h.answers[path] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			arrived <- path
			select {
			case <-all:
			case <-r.Context().Done():
			}
			(&fakeHub{t: t}).answer(w, r, answer)
		})
	}
	go func() {
		for range 3 {
			<-arrived
		}
		close(all)
	}()
	h.says(0, []string{"WORKER west", "Created pod: shards-0"}, "describe", "shards")
}

// A hint names all namespaces: those of the Jobs that are left are the admin's to find.
func TestDrainSaysHowToSeeWhatIsLeft(t *testing.T) {
	h := newHub(t)
	h.answers["/apis/jobferry.dev/v1alpha1/workerclusters/west"] = &v1alpha1.WorkerCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "west"}, Spec: v1alpha1.WorkerClusterSpec{Drain: true}, Status: v1alpha1.WorkerClusterStatus{Jobs: 2},
	}
	h.says(exitPending, []string{"2 unfinished Jobs left", "kubectl jobferry jobs -A --worker west shows which Jobs are left"}, "drain", "west", "--timeout", "700ms")
}
