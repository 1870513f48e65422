package plan

import (
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Pods that are listed need no room on the list, also if it's full, they come last, and their
// finalizers were kept by a refusal; others wait for room.
func TestListedPodsNeedNoRoom(t *testing.T) {
	listed := []*corev1.Pod{aPod("s1", succeeded), aPod("f1", failed), aPod("s2", succeeded), aPod("f2", failed)}
	unlisted := []*corev1.Pod{aPod("a", succeeded), aPod("b", failed)}
	job := aJob(sized(9, 9), func(j *batchv1.Job) {
		j.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Succeeded: []types.UID{"s1", "s2"}, Failed: []types.UID{"f1", "f2"}}
	})
	for _, row := range []struct {
		name    string
		gone    int // so many of the listed Pods lost their finalizer
		untrack []string
		more    bool
	}{
		{"all are tracked", 0, []string{"s1", "f1", "s2", "f2"}, true},
		{"one isn't any more", 1, []string{"a", "f1", "s2", "f2"}, true},
		{"two aren't", 2, []string{"a", "b", "s2", "f2"}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := Compute(snap(job, 0, slices.Concat(unlisted, listed[row.gone:])...), testOptions).Record(Result{})
			var untrack []string
			for _, p := range r.Untrack {
				untrack = append(untrack, p.Name)
			}
			if !slices.Equal(untrack, row.untrack) || r.More != row.more {
				t.Errorf("untracks %v, more %v", untrack, r.More)
			}
			on := r.Status.UncountedTerminatedPods
			if n := len(on.Succeeded) + len(on.Failed); n != testOptions.MaxUncountedPods {
				t.Errorf("%d Pods are listed: %v", n, on)
			}
			if got := int(r.Status.Succeeded + r.Status.Failed); got != row.gone {
				t.Errorf("%d are counted", got)
			}
		})
	}
}

// More Pods end than the list has room for, of both kinds, while more are surplus than a sync may
// delete: each is counted or given up, once.
func TestManyEndsAndManySurplusPods(t *testing.T) {
	w := newFakeCluster(aJob(sized(20, 40), func(j *batchv1.Job) { j.Spec.BackoffLimit = ptr.To[int32](99) }))
	c := start(w)
	sync := func() {
		t.Helper()
		before := w.deleted.Len()
		w.deliver(100, 1000)
		if err := c.sync(); err != nil || len(c.problems) > 0 {
			t.Fatal(err, c.problems)
		}
		if n := w.deleted.Len() - before; n > testOptions.MaxPodCreateDeletePerSync {
			t.Errorf("a sync deletes %d", n)
		}
	}
	for range 4 {
		sync()
	}
	ended := 0
	for _, p := range w.pods {
		if ended++; ended <= 12 {
			w.end(p, int32(ended%2))
		}
	}
	w.job.Spec.Parallelism = ptr.To[int32](1)
	w.storeJob()
	for range 6 {
		sync()
	}
	s := w.job.Status
	if s.Succeeded != 6 || s.Failed != 6 || s.Active != 1 || w.deleted.Len() != 7 {
		t.Errorf("%d deleted, status %+v", w.deleted.Len(), s)
	}
	for _, p := range w.pods {
		if Ended(p) == IsTracked(p, testOptions.TrackingFinalizer) && p.DeletionTimestamp == nil {
			t.Errorf("Pod %s is %s with the finalizers %v", p.Name, p.Status.Phase, p.Finalizers)
		}
	}
}
