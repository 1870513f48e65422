package job

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/intervals"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// syncIndexes is sync for an Indexed Job: which indexes run counts.
func (v *fakeWorker) syncIndexes(job *batchv1.Job) {
	s, n := &job.Status, int(*job.Spec.Completions)
	completed := intervals.ParseLenient(s.CompletedIndexes, n)
	todo := intervals.Range(0, n).Minus(completed).Minus(intervals.ParseLenient(ptr.Deref(s.FailedIndexes, ""), n))
	following := shards.IsFollowing(job)
	if following {
		asked := intervals.ParseLenient(job.Annotations[v1alpha1.AnnotationIndexes], n)
		todo = todo.Intersect(intervals.ParseLenient(job.Annotations[v1alpha1.AnnotationIndexesObserved], n))
		job.Annotations[v1alpha1.AnnotationIndexesObserved] = asked.Union(v.running).String()
	}
	v.running = v.running.Intersect(todo)
	ending := shards.Ending(job)
	switch {
	case job.DeletionTimestamp != nil:
		v.running = nil
	case v1alpha1.IsFenced(job) || v.isFencing():
		job.Annotations[v1alpha1.AnnotationFenced] = "yes"
		v.running = nil
	case mirror.Suspended(job) && ending == nil:
		v.running, s.StartTime = nil, nil
		v.condition(job, batchv1.JobSuspended, corev1.ConditionTrue)
	case ending != nil || completed.Len() == n && !following:
		v.running = nil
		v.end(job, ending)
	default:
		if s.StartTime == nil {
			s.StartTime = ptr.To(metav1.NewTime(v.world.clock.Now()))
		}
		if len(s.Conditions) > 0 {
			v.condition(job, batchv1.JobSuspended, corev1.ConditionFalse)
		}
		more := max(int(*job.Spec.Parallelism)-v.running.Len(), 0)
		v.running = v.running.Union(intervals.Of(todo.Minus(v.running).First(more)...))
		v.running = intervals.Of(v.running.First(int(*job.Spec.Parallelism))...)
	}
	s.Active, s.Ready, s.Terminating = int32(v.running.Len()), ptr.To(int32(v.running.Len())), ptr.To[int32](0)
	v.world.checkIndexes()
}

func (v *fakeWorker) end(job *batchv1.Job, ending *batchv1.JobCondition) {
	if job.Status.StartTime == nil {
		job.Status.StartTime = ptr.To(metav1.NewTime(v.world.clock.Now()))
	}
	if ending != nil && ending.Type == batchv1.JobFailureTarget {
		v.condition(job, batchv1.JobFailed, corev1.ConditionTrue)
		return
	}
	job.Status.CompletionTime = ptr.To(metav1.NewTime(v.world.clock.Now()))
	v.condition(job, batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue)
	v.condition(job, batchv1.JobComplete, corev1.ConditionTrue)
}

// isFencing reports whether the worker's fence stops its Pods.
func (v *fakeWorker) isFencing() bool {
	return v.fenced && v.isAway() && !v.world.clock.Now().Before(v.since.Add(lostAfter/2))
}

// finishes has up to n of the running Pods succeed, the lowest indexes first.
func (v *fakeWorker) finishes(n int) {
	done := intervals.Of(v.running.First(n)...)
	if len(done) == 0 || v.api.jobs[jobKey] == nil {
		return
	}
	v.world.logf(v.Name(), "indexes %s succeed", done)
	v.running = v.running.Minus(done)
	v.api.change(jobKey, func(job *batchv1.Job) {
		completed := intervals.ParseLenient(job.Status.CompletedIndexes, intervals.NoLimit).Union(done)
		job.Status.CompletedIndexes, job.Status.Succeeded = completed.String(), int32(completed.Len())
	})
	if twice := done.Intersect(v.world.finished); len(twice) > 0 && !v.world.mayRunTwice {
		v.world.fail("indexes %s complete twice", twice)
	}
	v.world.finished = v.world.finished.Union(done)
}

// checkIndexes holds that no index runs in two workers, and that all together don't run more Pods
// than the Job may, or could before its user changed it.
func (w *world) checkIndexes() {
	w.Helper()
	var all intervals.Set
	for _, v := range w.registered() {
		if v.isFencing() {
			continue
		}
		if twice := all.Intersect(v.running); len(twice) > 0 && !w.mayRunTwice {
			w.fail("indexes %s run in two workers", twice)
		}
		all = all.Union(v.running)
	}
	if hub := w.hub.jobs[jobKey]; hub != nil {
		w.parallelism = max(w.parallelism, int(*hub.Spec.Parallelism))
	}
	if all.Len() > w.parallelism && !w.mayRunTwice {
		w.fail("%d Pods run", all.Len())
	}
}

// checkParallelism holds that all workers that are connected follow the Job's parallelism.
func (w *world) checkParallelism() {
	w.Helper()
	w.parallelism = int(*w.hub.jobs[jobKey].Spec.Parallelism)
	for _, v := range w.registered() {
		if v.isAway() {
			w.parallelism += v.running.Len()
		}
	}
	w.checkIndexes()
}
