package reflect_test

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/jobferry/jobferry/pkg/mirror/intervals"
)

// honestWorker is a Job controller reduced to the statuses that it writes. All its state is in the
// mirror.
type honestWorker struct {
	minor int           // of its Job controller, Kubernetes 1.minor
	ahead time.Duration // of the hub's clock
}

// anyHonestWorker draws the Job controller of a worker whose API server has the minor version. It
// may be older.
func anyHonestWorker(t *rapid.T, minor int) *honestWorker {
	return &honestWorker{
		minor: rapid.SampledFrom([]int{28, 32, minor}).Draw(t, "Job controller"),
		ahead: time.Duration(rapid.IntRange(-50, 50).Draw(t, "clock")) * time.Minute,
	}
}

// twoSteps: since 1.31 a Job's end is announced by an interim condition, and comes when all its
// Pods have ended.
func (w *honestWorker) twoSteps() bool { return w.minor >= 31 }

// sync is one sync of the controller, in which something random has happened to the Pods.
func (w *honestWorker) sync(t *rapid.T, job *batchv1.Job, hubNow time.Time) {
	s, now := &job.Status, metav1.NewTime(hubNow.Add(w.ahead))
	if has(s, batchv1.JobComplete) || has(s, batchv1.JobFailed) {
		return
	}
	s.Ready = ptr(min(deref(s.Ready), s.Active))
	if w.minor >= 28 {
		s.Terminating = ptr(deref(s.Terminating))
	}
	trimIndexes(job)
	if !*job.Spec.Suspend && s.StartTime == nil {
		s.StartTime = &now
	}
	if w.ending(s, now) {
		return
	}
	if *job.Spec.Suspend {
		w.suspend(s, now)
	} else {
		w.resume(s, now)
		w.runPods(t, job)
		w.decide(t, job, now)
	}
	if deref(s.Terminating) > 0 && chance(t, 50, "a Pod is gone") {
		*s.Terminating--
	}
}

// ending continues an end that's been announced.
func (w *honestWorker) ending(s *batchv1.JobStatus, now metav1.Time) bool {
	for interim, final := range map[batchv1.JobConditionType]batchv1.JobConditionType{
		batchv1.JobSuccessCriteriaMet: batchv1.JobComplete,
		batchv1.JobFailureTarget:      batchv1.JobFailed,
	} {
		if !has(s, interim) {
			continue
		}
		switch {
		case s.Active > 0:
			w.endPods(s)
		case *s.Terminating > 0:
			*s.Terminating--
		case s.StartTime != nil: // or its API server won't have it
			w.finish(s, final, now)
		}
		return true
	}
	return false
}

func (w *honestWorker) finish(s *batchv1.JobStatus, final batchv1.JobConditionType, now metav1.Time) {
	set(s, final, corev1.ConditionTrue, now)
	if final == batchv1.JobComplete {
		s.CompletionTime = &now
	}
}

func (w *honestWorker) endPods(s *batchv1.JobStatus) {
	*s.Terminating += s.Active
	s.Active = 0
	if w.twoSteps() {
		s.Ready = ptr[int32](0)
	}
}

func (w *honestWorker) suspend(s *batchv1.JobStatus, now metav1.Time) {
	w.endPods(s)
	if !has(s, batchv1.JobSuspended) {
		set(s, batchv1.JobSuspended, corev1.ConditionTrue, now)
		if w.minor >= 36 {
			s.StartTime = nil
		}
	}
}

func (w *honestWorker) resume(s *batchv1.JobStatus, now metav1.Time) {
	if has(s, batchv1.JobSuspended) {
		set(s, batchv1.JobSuspended, corev1.ConditionFalse, now)
		s.StartTime = &now
	}
}

func (w *honestWorker) runPods(t *rapid.T, job *batchv1.Job) {
	s := &job.Status
	s.Active = min(max(s.Active, int32(rapid.IntRange(0, 3).Draw(t, "created"))), wantedPods(job))
	s.Ready = ptr(min(s.Active, int32(rapid.IntRange(0, 3).Draw(t, "ready"))))
	if s.Active == 0 {
		return
	}
	switch {
	case chance(t, 40, "a Pod succeeds"):
		s.Active--
		succeed(t, job)
	case chance(t, 20, "a Pod fails"):
		s.Active--
		s.Failed++
		if job.Spec.BackoffLimitPerIndex != nil && chance(t, 50, "its index fails") {
			if i, ok := openIndex(t, job); ok {
				failed := indexes(deref(s.FailedIndexes)).Union(intervals.Of(i))
				s.FailedIndexes = ptr(failed.String())
			}
		}
	}
	s.Ready = ptr(min(*s.Ready, s.Active))
	if job.Spec.BackoffLimitPerIndex != nil && s.FailedIndexes == nil {
		s.FailedIndexes = ptr("")
	}
}

func wantedPods(job *batchv1.Job) int32 {
	if job.Spec.Completions == nil {
		return *job.Spec.Parallelism
	}
	left := *job.Spec.Completions - job.Status.Succeeded - int32(indexes(deref(job.Status.FailedIndexes)).Len())
	return max(0, min(*job.Spec.Parallelism, left))
}

func succeed(t *rapid.T, job *batchv1.Job) {
	s := &job.Status
	if *job.Spec.CompletionMode != batchv1.IndexedCompletion {
		s.Succeeded++
		return
	}
	if i, ok := openIndex(t, job); ok {
		completed := indexes(s.CompletedIndexes).Union(intervals.Of(i))
		s.CompletedIndexes, s.Succeeded = completed.String(), int32(completed.Len())
	}
}

// decide announces the Job's end, or, before 1.31, ends it at once.
func (w *honestWorker) decide(t *rapid.T, job *batchv1.Job, now metav1.Time) {
	s := &job.Status
	var interim, final batchv1.JobConditionType
	failedIndexes := int32(indexes(deref(s.FailedIndexes)).Len())
	switch n := job.Spec.Completions; {
	case s.Failed > *job.Spec.BackoffLimit,
		n != nil && failedIndexes > 0 && failedIndexes+s.Succeeded >= *n,
		chance(t, 2, "deadline exceeded"):
		interim, final = batchv1.JobFailureTarget, batchv1.JobFailed
	case n == nil && s.Succeeded > 0 && s.Active == 0,
		n != nil && s.Succeeded >= *n && s.Active == 0,
		job.Spec.SuccessPolicy != nil && s.Succeeded >= *job.Spec.SuccessPolicy.Rules[0].SucceededCount:
		interim, final = batchv1.JobSuccessCriteriaMet, batchv1.JobComplete
	default:
		return
	}
	w.endPods(s)
	if w.twoSteps() {
		set(s, interim, corev1.ConditionTrue, now)
		return
	}
	w.finish(s, final, now)
}

// trimIndexes follows a Job that was scaled down.
func trimIndexes(job *batchv1.Job) {
	if *job.Spec.CompletionMode != batchv1.IndexedCompletion {
		return
	}
	s, n := &job.Status, int(*job.Spec.Completions)
	completed := indexes(s.CompletedIndexes).Below(n)
	s.CompletedIndexes, s.Succeeded = completed.String(), int32(completed.Len())
	if s.FailedIndexes != nil {
		s.FailedIndexes = ptr(indexes(*s.FailedIndexes).Below(n).String())
	}
}

// openIndex draws an index that has neither completed nor failed.
func openIndex(t *rapid.T, job *batchv1.Job) (int, bool) {
	n := int(*job.Spec.Completions)
	done := indexes(job.Status.CompletedIndexes).Union(indexes(deref(job.Status.FailedIndexes)))
	open := intervals.Range(0, n).Minus(done).First(n)
	if len(open) == 0 {
		return 0, false
	}
	return rapid.SampledFrom(open).Draw(t, "index"), true
}

// indexes reads back what the worker wrote itself.
func indexes(text string) intervals.Set { return intervals.ParseLenient(text, intervals.NoLimit) }

func has(s *batchv1.JobStatus, t batchv1.JobConditionType) bool {
	return slices.ContainsFunc(s.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == t && c.Status == corev1.ConditionTrue
	})
}

func set(s *batchv1.JobStatus, t batchv1.JobConditionType, status corev1.ConditionStatus, now metav1.Time) {
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c batchv1.JobCondition) bool { return c.Type == t })
	s.Conditions = append(s.Conditions, batchv1.JobCondition{
		Type: t, Status: status, Reason: "Reason", Message: "message", LastTransitionTime: now, LastProbeTime: now,
	})
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
