package job

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
)

// A placement that is only restored isn't one more placement.
func TestRestoringIsNoPlacement(t *testing.T) {
	w := newWorld(t)
	runs(w)
	placed, line := observed(t, "jobferry_placement_latency_seconds"), len(w.events)
	w.clock.Step(time.Hour)
	w.edits("removes the placement", kept(hubstate.Cluster, ""))
	w.run()
	if got := observed(t, "jobferry_placement_latency_seconds"); got != placed {
		t.Errorf("%d placements were observed, want %d", got, placed)
	}
	want := []string{"Placed: The placement on worker a was missing, and is restored"}
	if got := w.events[line:]; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

// observed returns how often a histogram was observed.
func observed(t *testing.T, name string) uint64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetHistogram().GetSampleCount()
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

// A Job that returns to the worker that it was moved from keeps nothing of the move.
func TestReturnUndoesTheMove(t *testing.T) {
	w := newWorld(t)
	w.submits(aJob("train", annotated(v1alpha1.AnnotationOnClusterLost, v1alpha1.OnClusterLostRestart)))
	w.step(time.Second)
	w.worker("a").completes(1)
	w.step(time.Second)
	w.refuses = func(sent write) error {
		if sent.server == "b" {
			return apierrors.NewTimeoutError("slow", 1)
		}
		return nil
	}
	w.worker("a").isLost()
	if moved := w.hub.jobs[jobKey]; hubstate.Get(moved, hubstate.FreshStart) == "" || hubstate.Get(moved, hubstate.Cluster) != "b" {
		w.fail("the Job wasn't moved, to start from zero: %v", moved)
	}
	w.worker("a").completes(3)
	w.worker("a").work()
	w.worker("a").isBack()
	w.step(time.Minute)
	for _, key := range []hubstate.Key{hubstate.MovedFrom, hubstate.MovedAt, hubstate.MovedWith, hubstate.FreshStart, hubstate.DeadlineSpent} {
		if value := hubstate.Get(w.hub.jobs[jobKey], key); value != "" {
			t.Errorf("%s=%s is left", key, value)
		}
	}
	if w.state() != "hub: 0 active, 4 succeeded, finished on \"a\", from \"\", finalizers []\n"+
		"a: 0 active, 4 succeeded, finished of hub-1, parallelism 2\n" {
		w.fail("ends as:\n%s", w.state())
	}
	if last := w.events[len(w.events)-1]; last != "Moved: Moved from worker b back to worker a, where the Job has ended" {
		t.Errorf("the last event is %q", last)
	}
}

// Answers of the hub that arrive after the watch has told of the Job's end bring nothing back.
func TestAnswersAfterTheEnd(t *testing.T) {
	for _, last := range []string{"hub patch", "hub status"} {
		t.Run(last, func(t *testing.T) {
			w := newWorld(t)
			w.submits(aJob("train"))
			w.answers = func(sent write) {
				if sent.server+" "+sent.verb == last && w.hub.jobs[jobKey] != nil {
					w.edits("removes the finalizer", func(job *batchv1.Job) { job.Finalizers = nil })
					w.deletes(metav1.DeletePropagationBackground)
					w.deliver()
				}
			}
			w.step(20 * time.Minute)
			if s := w.store; len(s.records)+len(s.counts)+len(s.onWorker)+len(s.waiting) != 0 {
				w.fail("the store keeps %+v", s)
			}
			if w.state() != "" {
				w.fail("left:\n%s", w.state())
			}
		})
	}
}

// A Job whose every write the hub refuses says so once, waits longer each time, and continues once
// it is allowed.
func TestEveryWriteIsRefused(t *testing.T) {
	w := newWorld(t)
	w.submits(aJob("train"))
	var tries []time.Time
	w.refuses = func(sent write) error {
		if sent.server != "hub" || !sent.isOfJob() {
			return nil
		}
		tries = append(tries, w.clock.Now())
		return apierrors.NewForbidden(jobsResource, "train", errors.New("a policy"))
	}
	w.step(40 * time.Minute)
	wait := time.Second
	for i := range len(tries) - 1 {
		if got := tries[i+1].Sub(tries[i]); got != min(wait, 5*time.Minute) {
			t.Errorf("try %d comes after %s, want %s", i+2, got, min(wait, 5*time.Minute))
		}
		wait *= 2
	}
	if len(tries) < 10 {
		t.Errorf("%d tries", len(tries))
	}
	if got := reasons(w.events); !slices.Equal(got, []string{v1alpha1.EventForbidden}) {
		t.Errorf("events %v", w.events)
	}
	w.refuses = nil
	w.step(5 * time.Minute)
	if !w.running("a") {
		w.fail("the Job doesn't run:\n%s", w.state())
	}
	if n := w.store.open(jobKey).read(w.clock.Now()).hubRefusals; n != 0 {
		t.Errorf("%d refusals are remembered", n)
	}
}

// A hub that doesn't answer is asked less and less often, though the capacity that was reserved for
// the Job comes free each time.
func TestHubDoesNotAnswer(t *testing.T) {
	w := newWorld(t)
	w.submits(aJob("train"))
	tries := 0
	w.refuses = func(sent write) error {
		if sent.server == "hub" {
			tries++
			return apierrors.NewTimeoutError("slow", 1)
		}
		return nil
	}
	w.step(time.Minute)
	if tries < 10 || tries > 15 {
		t.Errorf("%d tries in a minute", tries)
	}
	if freed := w.worker("a").freed; freed < tries {
		t.Errorf("what was reserved came free %d times, want %d", freed, tries)
	}
}

// A worker that was just reconnected may have a mirror that its cache doesn't show: it is read
// before the Job starts elsewhere.
func TestFormerMirrorIsRead(t *testing.T) {
	w := newWorld(t)
	runs(w)
	w.refuses = func(sent write) error {
		if sent.server == "b" {
			return apierrors.NewTimeoutError("slow", 1)
		}
		return nil
	}
	w.worker("a").isLost()
	w.refuses = nil
	w.worker("a").seen, w.worker("a").since = jobs{}, time.Time{}
	w.triggers.Enqueue(jobKey)
	line := len(w.log)
	if _, err := w.reconcile(); err != nil {
		w.fail("the reconcile: %v", err)
	}
	if got := w.since(line); !slices.Equal(got, []string{"a: patch suspend=true", "event: Moving"}) {
		w.fail("then: %q", got)
	}
	w.step(time.Minute)
	if !w.running("b") {
		w.fail("ends as:\n%s", w.state())
	}
}

// Whether a Job that waits fits by now is a question: it frees no capacity, and enqueues nobody.
func TestAskingChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.worker("b").drains(true)
	runs(w)
	w.suspends()
	w.run()
	w.submits(aJob("other", func(job *batchv1.Job) { *job.Spec.Parallelism, *job.Spec.Completions = 8, 8 }))
	w.run()
	w.resumes()
	w.step(time.Second)
	if m := w.worker("a").api.jobs[jobKey]; !*m.Spec.Suspend {
		w.fail("the Job was resumed, though there is no capacity")
	}
	freed := w.worker("a").freed
	for range 5 {
		w.triggers.Enqueue(jobKey)
		w.step(100 * time.Millisecond)
	}
	if got := w.worker("a").freed - freed; got != 0 {
		t.Errorf("capacity was freed %d times", got)
	}
	if len(w.queue.requests) > 0 || w.clock.HasWaiters() {
		t.Errorf("enqueued: %v", w.queue.requests)
	}
}

// A Job that holds capacity may be resumed, whoever else waits for a node.
func TestReservedCapacityIsTheJobs(t *testing.T) {
	w := newWorld(t)
	w.worker("b").drains(true)
	isQueued(w)
	w.run()
	w.worker("a").ledger.SetPod(otherPod("bound", "node", "6"))
	w.worker("a").ledger.SetPod(otherPod("pending", "", "2"))
	for range 5 {
		w.triggers.Enqueue(jobKey)
		w.step(100 * time.Millisecond)
	}
	if got := hubstate.Get(w.hub.jobs[jobKey], hubstate.MovedFrom); got != "" {
		w.fail("the Job was moved from %s", got)
	}
	w.admits(dispatch.Admission{Checked: true})
	w.resumes()
	w.step(time.Second)
	if !w.running("a") {
		w.fail("the Job doesn't run:\n%s", w.state())
	}
}

// otherPod is a Pod that isn't ours.
func otherPod(name, node, cpus string) *corev1.Pod {
	pod := aJob(name).Spec.Template
	pod.Spec.NodeName = node
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpus)}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: name, UID: types.UID("pod-" + name)},
		Spec:       pod.Spec,
	}
}

// A mirror that was created and deleted before the cache showed it holds the Job up for a minute,
// not for ever, and no event says that another one was created in the meantime.
func TestMirrorThatTheCacheNeverShows(t *testing.T) {
	w := newWorld(t)
	needsConfigMap(w)
	if _, err := w.refuse("a create ConfigMap", apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "settings", nil)); err != nil {
		t.Fatal(err)
	}
	w.step(2 * time.Minute)
	if !w.running("b") {
		w.fail("the Job doesn't run in b:\n%s", w.state())
	}
	// the first goes without saying
	created := w.worker("a").api.created + w.worker("b").api.created - 1
	if got := strings.Count(strings.Join(w.events, "\n"), v1alpha1.EventMirrored+":"); got != created {
		w.fail("%d events say that a mirror was created, %d were", got, created)
	}
}
