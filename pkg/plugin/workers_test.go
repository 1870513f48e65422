package plugin

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/plugin/access"
)

// dividedHub is a hub whose Job runs in two workers: index 0 in east, 1 in west.
func dividedHub(t *testing.T) *fakeHub {
	h, job := newHub(t), hubJob()
	hubstate.Set(job, hubstate.Changes{
		hubstate.Shards:      "east=0;west=1",
		hubstate.ShardsState: `{"shards":{"east":{"parallelism":1},"west":{"parallelism":1}}}`,
	})
	job.Spec.CompletionMode, job.Spec.Parallelism = ptr.To(batchv1.IndexedCompletion), ptr.To[int32](2)
	h.answers[jobPath] = job
	h.answers["/apis/batch/v1/namespaces/team-a/jobs"] = &batchv1.JobList{Items: []batchv1.Job{*job}}
	h.answers[subPath+"pods"] = h.inEach(map[string]any{
		"east": &corev1.PodList{Items: []corev1.Pod{podIn("east", 0)}}, "west": &corev1.PodList{Items: []corev1.Pod{podIn("west", 1)}}})
	h.answers[subPath+"events"] = h.inEach(map[string]any{
		"east": &corev1.EventList{Items: []corev1.Event{eventIn("east", "SuccessfulCreate", "Created pod: shards-0")}}, "west": &corev1.EventList{}})
	return h
}

// inEach answers for the worker that is asked.
func (h *fakeHub) inEach(answers map[string]any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.answer(w, r, answers[r.URL.Query().Get("worker")]) })
}

func podIn(worker string, index int) corev1.Pod {
	p := pod(index)
	p.Annotations[v1alpha1.AnnotationCluster] = worker
	return p
}

// withoutWest has the lists lack what is in the worker west.
func (h *fakeHub) withoutWest() {
	west := refusal(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, `worker "west" is out of touch`, nil)
	h.answers[subPath+"pods"] = h.inEach(map[string]any{"east": &corev1.PodList{Items: []corev1.Pod{podIn("east", 0)}}, "west": west})
	h.answers[subPath+"events"] = h.inEach(map[string]any{"east": &corev1.EventList{}, "west": west})
}

// says expects a run's exit code, and texts of its two outputs.
func (h *fakeHub) says(code int, texts []string, args ...string) {
	h.t.Helper()
	got := h.run(args...)
	for _, text := range texts {
		if got.code != code || !strings.Contains(got.out+got.err, text) {
			h.t.Errorf("%v: %d, no %q in %s%s", args, got.code, text, got.out, got.err)
		}
	}
}

func TestJobInSeveralWorkers(t *testing.T) {
	h := dividedHub(t)
	h.says(0, []string{"0\n1\n"}, "__complete", "logs", "shards", "--index", "")
	h.says(0, []string{"1\n"}, "__complete", "exec", "shards", "--index", "1")
	h.says(0, []string{"shards   2 workers"}, "jobs")
	h.says(0, []string{"east,west"}, "jobs", "-o", "wide")
	h.says(0, []string{"shards   2 workers"}, "jobs", "--worker", "west")
	h.says(exitFailed, []string{"there is no WorkerCluster north\n  the hub has east, west: kubectl jobferry clusters shows them"}, "jobs", "--worker", "north")
	h.says(0, []string{"AGE ", "WORKER\n", "east\nshards-1", "west\n"}, "pods", "shards")
	h.says(0, []string{"east   job/shards", "Created pod: shards-0"}, "events", "shards")
	h.says(0, []string{"Worker:           east, west", "\nShards:\n  WORKER   INDEXES", "\n  east     0         0           0        1      0             1             2"}, "describe", "shards")
	h.says(0, []string{"[east pod/shards-0/main] log of container=main&pod=shards-0&worker=east\n", "[west pod/shards-1/main] log of"}, "logs", "shards", "--all-pods")
	h.says(0, []string{"log of index=1&worker=west\n"}, "logs", "shards", "--index", "1", "--worker", "wc/west")
	h.says(0, []string{"[west pod/shards-1/main] log of container=main&pod=shards-1&worker=west\n"}, "logs", "shards", "--index", "1", "--prefix")
	if got := h.with("", "exec", "shards", "--index", "1", "--worker", "west", "--", "true"); !strings.Contains(got.out, "&worker=west\n") {
		t.Errorf("%+v", got)
	}
}

// What a worker that can't be asked has is reported as missing; the rest is printed.
func TestOneOfSeveralWorkersIsMissing(t *testing.T) {
	h := dividedHub(t)
	h.withoutWest()
	const missing = `warning: worker "west" is out of touch`
	h.says(exitFailed, []string{"shards-0   0", missing, "error: not all Pods of the Job shards could be read"}, "pods", "shards")
	h.says(exitFailed, []string{`"name": "shards-0"`, missing}, "pods", "shards", "-o", "json")
	h.says(exitFailed, []string{"hub    job/shards", missing, "error: not all events"}, "events", "shards")
	h.says(exitFailed, []string{"pod/shards-0/main] log of", missing, "error: not all Pods"}, "logs", "shards", "--all-pods")
	h.says(0, []string{`The worker's side can't be read: worker "west" is out of touch`}, "describe", "shards")
	h.says(exitFailed, []string{missing, "more than one worker may have such a Pod", "choose one by --worker"}, "logs", "shards", "--index", "0", "--prefix")

	// Who may not read the Job has the manager ask all of its workers.
	h.refuse(jobPath, http.StatusForbidden, metav1.StatusReasonForbidden, "no", nil)
	h.answers[subPath+"pods"] = &access.PodList{Items: []corev1.Pod{podIn("east", 0)}, Warnings: []string{`worker "west" is out of touch`}}
	h.says(exitFailed, []string{"shards-0   0", missing, "error: not all Pods of the Job shards could be read"}, "pods", "shards")
}

// A worker that has a Pod of another's index, or name, isn't taken for it.
func TestAWorkerCantPassForAnother(t *testing.T) {
	h := dividedHub(t)
	h.answers[subPath+"pods"] = h.inEach(map[string]any{
		"east": &corev1.PodList{Items: []corev1.Pod{podIn("east", 1)}}, "west": &corev1.PodList{Items: []corev1.Pod{podIn("west", 1)}}})
	h.says(exitFailed, []string{"more than one worker may have such a Pod"}, "logs", "shards", "--index", "1", "--prefix")
	h.says(exitFailed, []string{"more than one worker may have such a Pod"}, "logs", "shards", "--pod", "shards-1", "--prefix")
	h.answers[subPath+"log"] = func(query url.Values) string { return query.Get("worker") + "'s\n" }
	h.says(0, []string{"[east pod/shards-1/main] east's\n", "[west pod/shards-1/main] west's\n"}, "logs", "shards", "--all-pods")
}

// Workers are asked at the same time: here each waits for the others.
func TestWorkersAreAskedAtOnce(t *testing.T) {
	h := dividedHub(t)
	pods := h.answers[subPath+"pods"].(http.Handler)
	var all sync.WaitGroup
	all.Add(2)
	h.answers[subPath+"pods"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all.Done()
		all.Wait()
		pods.ServeHTTP(w, r)
	})
	h.says(0, []string{"shards-0 ", "shards-1 "}, "pods", "shards")

	// If none can be asked, the command fails, and says why of each.
	away := func(worker string) any {
		return refusal(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "worker "+worker+" is out of touch", nil)
	}
	h.answers[subPath+"pods"] = h.inEach(map[string]any{"east": away("east"), "west": away("west")})
	h.says(exitFailed, []string{"error: worker east is out of touch\nworker west is out of touch\n"}, "pods", "shards")
}
