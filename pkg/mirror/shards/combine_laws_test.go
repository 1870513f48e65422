package shards

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/intervals"
	"github.com/jobferry/jobferry/pkg/mirror/mirrortest"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// liars are a hub Job, its shards, and their workers, which report whatever they like.
type liars struct {
	hub     *batchv1.Job
	placed  Placement
	mirrors []Mirror
	// fixed are the indexes that the mirror in each worker was created for, if that can't change.
	follows map[string]bool
	now     time.Time
}

// The workers of a divided Job report anything that mirror.Check lets through: indexes of others,
// absurd counters, ends that contradict one another.
func TestCombineLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newLiars(t)
		for range rapid.IntRange(1, 6).Draw(t, "reports") {
			w.report(t)
			w.combine(t)
			w.now = w.now.Add(time.Minute)
		}
	})
}

func newLiars(t *rapid.T) *liars {
	n := rapid.IntRange(1, 20).Draw(t, "completions")
	job := mirrortest.New("job").ManagedBy(v1alpha1.ManagedByDispatcher).Completions(int32(n)).Parallelism(4)
	if rapid.Bool().Draw(t, "indexed") {
		job.Indexed(int32(n))
		if rapid.Bool().Draw(t, "per index") {
			job.BackoffLimitPerIndex(1)
		}
	}
	w := &liars{hub: job.Suspend(rapid.Bool().Draw(t, "suspend")).Obj(), follows: map[string]bool{}, now: noon}
	w.hub.Annotations = map[string]string{}
	w.placed.Settled = Counters{Failed: rapid.Int32Range(0, 3).Draw(t, "settled")}
	w.hub.Status.Failed = w.placed.Settled.Failed
	if Indexed(w.hub) && rapid.Bool().Draw(t, "maxFailedIndexes") && w.hub.Spec.BackoffLimitPerIndex != nil {
		w.hub.Spec.MaxFailedIndexes = ptr.To[int32](1)
	}
	left := intervals.Range(0, n)
	for i := range rapid.IntRange(1, 4).Draw(t, "shards") {
		s := Shard{Worker: fmt.Sprintf("w%d", i), State: State{Parallelism: 1}}
		low, high := left.Split(rapid.IntRange(0, left.Len()).Draw(t, "size"))
		if left = high; Indexed(w.hub) {
			s.Indexes = low
		} else {
			s.Number = low.Len()
		}
		w.follows[s.Worker] = rapid.Bool().Draw(t, "embedded") && Indexed(w.hub)
		w.placed.Shards = append(w.placed.Shards, s)
	}
	return w
}

// report has each worker report something new, or nothing. What mirror.Check refuses counts as
// unknown.
func (w *liars) report(t *rapid.T) {
	w.mirrors = nil
	for i, s := range w.placed.Shards {
		m := Mirror{Shard: s, Unknown: rapid.IntRange(0, 3).Draw(t, "unknown") == 0}
		if rapid.IntRange(0, 4).Draw(t, "missing") > 0 {
			m.Job = w.mirror(t, s)
			m.Job.Status = anyReport(t, w.hub, w.now.Add(time.Duration(i)*time.Second-time.Minute))
			if rapid.IntRange(0, 5).Draw(t, "edited") == 0 {
				m.Job.Annotations[v1alpha1.AnnotationIndexes] = rapid.SampledFrom([]string{"", "x", "0-3", "0-19", "7"}).Draw(t, "text")
			}
			if _, broken := mirror.Check(w.hub, m.Job, w.now); broken {
				m.Job, m.Unknown = nil, true
			}
		}
		w.mirrors = append(w.mirrors, m)
	}
}

func (w *liars) mirror(t *rapid.T, s Shard) *batchv1.Job {
	target := mirror.Target{Origin: "hub", Indexes: ptr.To(s.Asked().String())}
	if w.follows[s.Worker] {
		target.JobController = v1alpha1.JobControllerEmbedded
	}
	m := mirror.Project(Part(w.hub, s, w.follows[s.Worker]), target)
	m.Spec.Suspend = ptr.To(rapid.Bool().Draw(t, "suspended"))
	return m
}

var absurd = rapid.SampledFrom([]int32{0, 0, 1, 2, 3, 7, math.MaxInt32 - 1, math.MaxInt32, -1})

func anyReport(t *rapid.T, hub *batchv1.Job, at time.Time) batchv1.JobStatus {
	when := ptr.To(metav1.NewTime(at))
	some := rapid.SliceOfN(rapid.IntRange(0, 21), 0, 8)
	s := batchv1.JobStatus{Active: absurd.Draw(t, "active"), Succeeded: absurd.Draw(t, "succeeded"), Failed: absurd.Draw(t, "failed")}
	s.Ready, s.Terminating = ptr.To(absurd.Draw(t, "ready")), ptr.To(absurd.Draw(t, "terminating"))
	if Indexed(hub) {
		s.CompletedIndexes = intervals.Of(some.Draw(t, "completed")...).String()
		if hub.Spec.BackoffLimitPerIndex != nil {
			s.FailedIndexes = ptr.To(intervals.Of(some.Draw(t, "failed indexes")...).String())
		}
	}
	uids := rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 5), func(i int) types.UID { return types.UID(fmt.Sprint(i)) }), 0, 4)
	s.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Succeeded: uids.Draw(t, "listed"), Failed: uids.Draw(t, "listed")}
	if rapid.Bool().Draw(t, "started") {
		s.StartTime = when
	}
	if rapid.Bool().Draw(t, "completed") {
		s.CompletionTime = ptr.To(metav1.NewTime(at.Add(-time.Hour)))
	}
	for _, kind := range []batchv1.JobConditionType{
		batchv1.JobSuspended, batchv1.JobFailureTarget, batchv1.JobFailed, batchv1.JobSuccessCriteriaMet, batchv1.JobComplete,
	} {
		if rapid.IntRange(0, 3).Draw(t, "condition") == 0 {
			reason := rapid.SampledFrom([]string{"", batchv1.JobReasonFailedIndexes, batchv1.JobReasonPodFailurePolicy}).Draw(t, "reason")
			s.Conditions = append(s.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: *when})
		}
	}
	return s
}

// combine checks the laws, and writes the result to the hub Job.
func (w *liars) combine(t *rapid.T) {
	combined, next := Combine(w.hub, w.placed.Settled, w.mirrors, w.now)
	again, _ := Combine(w.hub, w.placed.Settled, rapid.Permutation(w.mirrors).Draw(t, "order"), w.now)
	if !equality.Semantic.DeepEqual(combined, again) {
		t.Fatalf("the order of the mirrors matters:\n%+v\n%+v", combined.Status, again.Status)
	}
	w.checkIndexes(t, combined)
	w.checkCounters(t, combined, next)
	w.checkEnd(t, combined)
	if mirror.Finished(w.hub) {
		return
	}
	switch verdict := mirror.Reflect(w.hub, combined, w.now).(type) {
	case mirror.Violation:
		t.Fatalf("%+v\nof %+v\nto %+v", verdict, w.hub.Status, combined.Status)
	case mirror.Next:
		w.hub.Status, w.placed = verdict.Status, next
	}
}

// checkIndexes holds that each mirror has changed no index but those of its shard that it was
// created for.
func (w *liars) checkIndexes(t *rapid.T, combined *batchv1.Job) {
	var own intervals.Set
	for _, m := range w.mirrors {
		if m.Job == nil {
			continue
		}
		within := m.Indexes
		if created, err := ParseAmount(m.Job.Annotations[v1alpha1.AnnotationIndexes], true); !w.follows[m.Worker] {
			if within = within.Intersect(created.Indexes); err != nil {
				within = nil
			}
		}
		own = own.Union(within)
	}
	n := completions(w.hub)
	for _, text := range [][2]string{
		{w.hub.Status.CompletedIndexes, combined.Status.CompletedIndexes},
		{ptr.Deref(w.hub.Status.FailedIndexes, ""), ptr.Deref(combined.Status.FailedIndexes, "")},
	} {
		was, is := intervals.ParseLenient(text[0], n), intervals.ParseLenient(text[1], n)
		if !was.SubsetOf(is) || !is.Minus(was).SubsetOf(own) {
			t.Fatalf("%s became %s; the mirrors may change %s", was, is, own)
		}
	}
	completed := intervals.ParseLenient(combined.Status.CompletedIndexes, n)
	if failed := intervals.ParseLenient(ptr.Deref(combined.Status.FailedIndexes, ""), n); len(completed.Intersect(failed)) > 0 {
		t.Fatalf("%s have completed, and %s failed", completed, failed)
	}
}

// checkCounters holds that counters never fall, include the settled ones, and that no shard
// succeeds more often than it may.
func (w *liars) checkCounters(t *rapid.T, combined *batchv1.Job, next Placement) {
	if is, was := combined.Status, w.hub.Status; is.Failed < was.Failed || is.Succeeded < was.Succeeded || is.Active < 0 ||
		ptr.Deref(is.Terminating, 0) < 0 || int(is.Succeeded) > completions(w.hub) {
		t.Fatalf("counters of %+v after %+v", is, was)
	}
	sum := int64(w.placed.Settled.Failed)
	for i, s := range next.Shards {
		before := w.placed.Shards[i]
		if s.Failed < before.Failed || s.Succeeded < before.Succeeded || int(s.Succeeded) > s.Number {
			t.Fatalf("counters of %+v after %+v", s, before)
		}
		sum += int64(s.Failed)
	}
	if next.Settled != w.placed.Settled || int64(combined.Status.Failed) != min(sum, math.MaxInt32) {
		t.Fatalf("%d failed; by the shards %d", combined.Status.Failed, sum)
	}
}

// checkEnd holds that the Job ends when all its mirrors have, and is suspended only if its user
// wants that.
func (w *liars) checkEnd(t *rapid.T, combined *batchv1.Job) {
	runs := slices.ContainsFunc(w.mirrors, func(m Mirror) bool {
		return m.Unknown || m.Job != nil && !mirror.Finished(m.Job) && !mirror.Stopped(m.Job)
	})
	unfinished := slices.ContainsFunc(w.mirrors, func(m Mirror) bool { return m.Unknown || m.Job != nil && !mirror.Finished(m.Job) })
	if unfinished && mirror.Finished(combined) {
		t.Fatalf("it ends while a shard hasn't: %+v", combined.Status)
	}
	isSuspended := mirror.TrueCondition(&combined.Status, batchv1.JobSuspended) != nil
	if isSuspended && (runs || !mirror.Suspended(w.hub)) {
		t.Fatalf("it is suspended while a shard may run: %+v", combined.Status)
	}
	if !isSuspended && !runs && mirror.Suspended(w.hub) {
		t.Fatalf("it isn't suspended, though nothing runs: %+v", combined.Status)
	}
}
