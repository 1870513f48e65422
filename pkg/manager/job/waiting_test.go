package job

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// runsPod has worker a list a Pod of the Job train, which its Job controller will look at no more.
func runsPod(w *world, change func(*corev1.Pod)) *fakeWorker {
	a := w.worker("a")
	w.submits(aJob("train"))
	w.step(time.Second)
	a.listsPods, a.idle = true, true
	job := a.api.jobs[jobKey]
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: job.Namespace, Name: "train-1", UID: "pod", OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: job.UID, Controller: ptr.To(true)}},
	}}
	change(pod)
	a.ledger.SetPod(pod)
	return a
}

func on(node string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.NodeName, pod.Status.Phase = node, corev1.PodRunning }
}

// A worker's Job controller stops, and the Pods end: that's told once, when it has held for a
// while, and nothing is written for it. The Job ends when its controller is back.
func TestPodsThatNobodyCounts(t *testing.T) {
	w := newWorld(t)
	a := runsPod(w, on("node"))
	w.step(time.Hour)
	before := len(w.log)
	a.ledger.DeletePod("pod") // its watch shows those that haven't ended
	w.step(29 * time.Second)
	if told := w.since(before); len(told) > 0 {
		w.fail("after 29 s: %q", told)
	}
	w.step(time.Second)
	if told := w.since(before); !slices.Equal(told, []string{"event: Deferred"}) {
		w.fail("after 30 s: %q", told)
	}
	w.step(time.Hour)
	a.idle = false
	a.completes(4)
	w.step(time.Second)
	told := w.since(before)
	if count := strings.Count(strings.Join(told, " "), "Deferred"); count != 1 {
		w.fail("it's told %d times", count)
	}
}

// The time begins anew with each way to be halted.
func TestHaltedInAnotherWay(t *testing.T) {
	w := newWorld(t)
	a := runsPod(w, on("node"))
	ready := func(n int32) func(*batchv1.Job) { return func(j *batchv1.Job) { j.Status.Ready = &n } }
	before := len(w.log)
	a.api.change(jobKey, ready(0))
	w.step(29 * time.Second)
	a.ledger.DeletePod("pod")
	w.step(29 * time.Second)
	for _, line := range w.since(before) {
		if strings.Contains(line, "event") {
			w.fail("told %q", line)
		}
	}
	w.step(time.Second)
	if told := w.since(before); told[len(told)-1] != "event: Deferred" {
		w.fail("told %q", told)
	}
}

// The last Pods of a Job are gated, as a policy of the worker says so: the Job moves in its time.
func TestPodsThatAreGated(t *testing.T) {
	w := newWorld(t)
	a := runsPod(w, func(pod *corev1.Pod) { pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} })
	a.api.change(jobKey, func(j *batchv1.Job) { j.Status.Ready, j.Status.Succeeded = ptr.To[int32](0), 1 })
	w.step(31 * time.Second)
	if told := strings.Join(w.since(0), " "); !strings.Contains(told, "event: PodsWaiting") {
		w.fail("it isn't told")
	}
	w.step(5 * time.Minute)
	if told := strings.Join(w.since(0), " "); !strings.Contains(told, "event: Moved") {
		w.fail("it doesn't move")
	}
}

// TestAWalkDuringAReconcile: a Job in line that a walk leaves out, as it's being reconciled, isn't
// enqueued when that ends: walks look at it. A change of a worker has it looked at again.
func TestAWalkDuringAReconcile(t *testing.T) {
	for why, again := range map[leftOut]bool{ofWalk: false, ofChange: true} {
		w := newWorld(t)
		for _, v := range w.registered() {
			v.view.Spec.Cordoned = true
		}
		w.submits(aJob("train"))
		w.step(time.Second)
		if wait := maps.Collect(w.line.Waits())[jobKey]; !wait.InLine {
			w.fail("it isn't in line: %+v", wait)
		}
		left := 0
		w.kueue.asked = func() {
			if keys := w.store.waiters(why); len(keys) == 0 {
				left++
			}
		}
		w.triggers.Enqueue(jobKey)
		if _, err := w.reconcile(); err != nil || left == 0 {
			t.Fatal(left, err)
		}
		if is := len(w.queue.requests) > 0; is != again {
			t.Errorf("left out for %v: it's enqueued: %v", why, is)
		}
	}
}
