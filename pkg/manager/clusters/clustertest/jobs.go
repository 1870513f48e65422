package clustertest

import (
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Running says how a cluster runs its Jobs.
type Running struct {
	// For is how long a Job's Pods run; 0: for ever.
	For func(*batchv1.Job) time.Duration
	// Nodes are the names of those that the Pods run on, by turns.
	Nodes []string
	// Started is called when a Job has started; nil: nobody wants to know.
	Started func(*batchv1.Job)
}

// RunJobs runs the cluster's Jobs until the context ends. Jobs that have started, as those that
// were put there, end as others do, from now on.
func (c *Cluster) RunJobs(ctx context.Context, how Running) {
	w := &runner{cluster: c, how: how}
	all, _, position := c.store.list("jobs")
	for _, o := range all {
		w.sync(ctx, o)
	}
	for {
		changes, _, more, known := c.store.after("jobs", position)
		if !known {
			all, _, position = c.store.list("jobs")
			for _, o := range all {
				w.sync(ctx, o)
			}
			continue
		}
		for _, change := range changes {
			if change.after != nil {
				w.sync(ctx, change.after)
			} else {
				w.removePods(change.before.name)
			}
		}
		position += len(changes)
		select {
		case <-more:
		case <-ctx.Done():
			return
		}
	}
}

// runner is the Job controller, scheduler and kubelet of a cluster.
type runner struct {
	cluster *Cluster
	how     Running
	started int
}

// sync does for a Job what is next.
func (w *runner) sync(ctx context.Context, o *stored) {
	job, is := o.object().(*batchv1.Job)
	ends := func(of batchv1.JobCondition) bool {
		return of.Status == corev1.ConditionTrue && (of.Type == batchv1.JobComplete || of.Type == batchv1.JobFailed)
	}
	switch {
	case !is || slices.ContainsFunc(job.Status.Conditions, ends):
	case job.DeletionTimestamp != nil:
		w.removePods(o.name)
		w.update(o.name, job.UID, func(j *batchv1.Job) {
			j.Finalizers = slices.DeleteFunc(j.Finalizers, func(f string) bool { return f == metav1.FinalizerDeleteDependents })
		})
	case ptr.Deref(job.Spec.Suspend, false):
		w.suspend(o.name, job)
	case job.Status.StartTime == nil:
		w.start(o.name, job)
		if w.how.Started != nil {
			w.how.Started(job)
		}
		w.end(ctx, o.name, job)
	}
}

func (w *runner) start(name types.NamespacedName, job *batchv1.Job) {
	n := ptr.Deref(job.Spec.Parallelism, 1)
	for i := range n {
		w.cluster.Put("pods", podOf(job, int(i), w.how.Nodes[w.started%len(w.how.Nodes)]))
		w.started++
	}
	now := metav1.Now()
	w.update(name, job.UID, func(j *batchv1.Job) {
		j.Status.StartTime, j.Status.Active, j.Status.Ready = &now, n, ptr.To(n)
		j.Status.Terminating, j.Status.UncountedTerminatedPods = ptr.To(int32(0)), &batchv1.UncountedTerminatedPods{}
		if i := slices.IndexFunc(j.Status.Conditions, isSuspended); i >= 0 {
			j.Status.Conditions[i].Status, j.Status.Conditions[i].Reason = corev1.ConditionFalse, "JobResumed"
		}
	})
}

// end ends a Job's Pods, and the Job, when their time is over.
func (w *runner) end(ctx context.Context, name types.NamespacedName, job *batchv1.Job) {
	if after := w.how.For(job); after > 0 {
		time.AfterFunc(after, func() {
			if ctx.Err() == nil {
				w.complete(name, job)
			}
		})
	}
}

func (w *runner) complete(name types.NamespacedName, job *batchv1.Job) {
	w.removePods(name)
	now := metav1.Now()
	w.update(name, job.UID, func(j *batchv1.Job) {
		if j.Status.StartTime == nil {
			return // it was suspended
		}
		j.Status.Active, j.Status.Ready = 0, ptr.To(int32(0))
		j.Status.Succeeded, j.Status.CompletionTime = ptr.Deref(j.Spec.Completions, 1), &now
		for _, of := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
			j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{
				Type: of, Status: corev1.ConditionTrue, Reason: "CompletionsReached",
				Message: "Reached expected number of succeeded pods", LastProbeTime: now, LastTransitionTime: now,
			})
		}
	})
}

func (w *runner) suspend(name types.NamespacedName, job *batchv1.Job) {
	if job.Status.StartTime == nil && slices.ContainsFunc(job.Status.Conditions, isSuspended) {
		return
	}
	w.removePods(name)
	now := metav1.Now()
	w.update(name, job.UID, func(j *batchv1.Job) {
		j.Status.StartTime, j.Status.Active, j.Status.Ready = nil, 0, ptr.To(int32(0))
		j.Status.Conditions = append(slices.DeleteFunc(j.Status.Conditions, isSuspended), batchv1.JobCondition{
			Type: batchv1.JobSuspended, Status: corev1.ConditionTrue, Reason: "JobSuspended", Message: "Job suspended",
			LastProbeTime: now, LastTransitionTime: now,
		})
	})
}

func isSuspended(of batchv1.JobCondition) bool { return of.Type == batchv1.JobSuspended }

// update changes a Job, unless it's gone or another one by now.
func (w *runner) update(name types.NamespacedName, uid types.UID, change func(*batchv1.Job)) {
	// it has no error of its own
	_, _ = w.cluster.store.write("jobs", name, func(old Object) (Object, error) {
		job, is := old.(*batchv1.Job)
		if !is || job.UID != uid {
			return old, nil
		}
		change(job)
		return job, nil
	})
}

func (w *runner) removePods(of types.NamespacedName) {
	for i := 0; ; i++ {
		name := types.NamespacedName{Namespace: of.Namespace, Name: podName(of.Name, i)}
		// as above
		gone, _ := w.cluster.store.write("pods", name, func(Object) (Object, error) { return nil, nil })
		if gone == nil {
			return
		}
	}
}

func podName(job string, number int) string { return fmt.Sprintf("%s-%05d", job, number) }

// podOf is a Pod of a Job as the Job controller makes it and the kubelet runs it.
func podOf(job *batchv1.Job, number int, node string) *corev1.Pod {
	now := metav1.Now()
	pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: *job.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name, pod.CreationTimestamp = job.Namespace, podName(job.Name, number), now
	pod.Finalizers = []string{batchv1.JobTrackingFinalizer}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, kinds["jobs"])}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	for _, prefix := range []string{"", "batch.kubernetes.io/"} {
		pod.Labels[prefix+"job-name"], pod.Labels[prefix+"controller-uid"] = job.Name, string(job.UID)
	}
	pod.Spec.NodeName = node
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &now, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now},
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now},
	}}
	return pod
}
