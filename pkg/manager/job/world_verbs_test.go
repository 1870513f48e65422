package job

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
)

var oneCPU = resource.MustParse("1")

// What users do on the hub. None of it reaches the manager before the next run.

func (w *world) submits(job *batchv1.Job) {
	w.Helper()
	w.logf("user", "submits %s", job.Name)
	if w.enlarges != nil {
		w.enlarges(job)
	}
	if err := w.hub.create(job); err != nil {
		w.Fatal(err)
	}
}

func (w *world) edits(what string, change func(*batchv1.Job)) {
	w.logf("user", "%s", what)
	w.hub.change(jobKey, change)
}

func (w *world) suspends() { w.edits("suspends the Job", suspended(true)) }
func (w *world) resumes()  { w.edits("resumes the Job", suspended(false)) }

func suspended(is bool) func(*batchv1.Job) {
	return func(job *batchv1.Job) { job.Spec.Suspend = ptr.To(is) }
}

func annotated(key, value string) func(*batchv1.Job) {
	return func(job *batchv1.Job) {
		if job.Annotations == nil {
			job.Annotations = map[string]string{}
		}
		if job.Annotations[key] = value; value == "" {
			delete(job.Annotations, key)
		}
	}
}

// kept changes what the manager keeps of a Job, as an admin may.
func kept(key hubstate.Key, value string) func(*batchv1.Job) {
	return func(job *batchv1.Job) { hubstate.Set(job, hubstate.Changes{key: value}) }
}

func (w *world) deletes(propagation metav1.DeletionPropagation) {
	w.Helper()
	w.logf("user", "deletes the Job")
	if err := w.hub.delete(jobKey, client.DeleteOptions{PropagationPolicy: &propagation}); err != nil {
		w.Fatal(err)
	}
}

// admits sets what Kueue says of the Job.
func (w *world) admits(a dispatch.Admission) {
	w.logf("kueue", "quota reserved: %v, workers %v", a.QuotaReserved, a.Workers)
	w.kueue.admissions[jobKey.Name] = a
	w.triggers.Enqueue(jobKey)
}

// labels sets the labels of the Jobs' namespace, and shows them to the manager at once.
func (w *world) labels(namespace map[string]string) {
	w.logf("admin", "labels the namespace %v", namespace)
	before := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: jobKey.Namespace, Labels: w.namespace}}
	after := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: jobKey.Namespace, Labels: namespace}}
	w.namespace = namespace
	w.triggers.namespaceEvents().Update(w.Context(),
		event.TypedUpdateEvent[*metav1.PartialObjectMetadata]{ObjectOld: before, ObjectNew: after}, nil)
}

// What happens in and to a worker.

// completes has some of the Job's Pods succeed.
func (v *fakeWorker) completes(n int32) {
	v.world.logf(v.Name(), "%d Pods succeed", n)
	v.api.change(jobKey, func(job *batchv1.Job) { job.Status.Succeeded += n })
}

func (v *fakeWorker) disconnects() {
	v.world.logf(v.Name(), "is away")
	v.since, v.view.State, v.view.Message = v.world.clock.Now(), clusters.Disconnected, "no answer"
	v.world.triggers.WorkerChanged(v.Name())
}

func (v *fakeWorker) isBack() {
	v.world.logf(v.Name(), "is back")
	v.since, v.view.State, v.view.Message = time.Time{}, clusters.Ready, ""
	v.world.deliver() // its mirrors are listed first
	v.world.triggers.WorkerChanged(v.Name())
}

// isLost has the worker be away until it is lost.
func (v *fakeWorker) isLost() {
	v.disconnects()
	v.world.step(lostAfter + time.Minute)
}

func (v *fakeWorker) drains(is bool) {
	v.world.logf(v.Name(), "is drained: %v", is)
	v.view.Spec.Drain = is
	v.world.triggers.WorkerChanged(v.Name())
}

// isRemoved has the worker's removal begin.
func (v *fakeWorker) isRemoved(policy v1alpha1.RemovalPolicy) {
	v.world.logf(v.Name(), "is removed, with the policy %s", policy)
	v.view.Removing, v.view.Spec.RemovalPolicy = true, policy
	v.world.triggers.WorkerChanged(v.Name())
}

// isGone ends the worker's registration.
func (v *fakeWorker) isGone() {
	v.world.logf(v.Name(), "is registered no more")
	delete(v.world.workers, v.Name())
	v.world.triggers.WorkerChanged(v.Name())
}

// loses deletes the Job behind the manager's back.
func (v *fakeWorker) loses() {
	v.world.logf(v.Name(), "somebody deletes the Job")
	if err := v.api.delete(jobKey, client.DeleteOptions{}); err != nil {
		v.world.Fatal(err)
	}
}

// losesInSight is loses of a Job that the watch shows being deleted first.
func (v *fakeWorker) losesInSight() {
	v.api.change(jobKey, func(m *batchv1.Job) { m.Finalizers = []string{metav1.FinalizerDeleteDependents} })
	v.loses()
	v.world.deliver()
	v.api.change(jobKey, func(m *batchv1.Job) { m.Finalizers = nil })
}

// has creates a Job behind the manager's back.
// expires has somebody in the worker delete the mirror, such as its TTL controller.
func (v *fakeWorker) expires(propagation metav1.DeletionPropagation) {
	v.world.Helper()
	v.world.logf(v.Name(), "deletes the mirror")
	if err := v.api.delete(jobKey, client.DeleteOptions{PropagationPolicy: &propagation}); err != nil {
		v.world.Fatal(err)
	}
}

func (v *fakeWorker) has(job *batchv1.Job) {
	v.world.logf(v.Name(), "somebody creates a Job %s", job.Name)
	if err := v.api.create(job); err != nil {
		v.world.Fatal(err)
	}
}

func (w *world) worker(name string) *fakeWorker { return w.workers[name] }
