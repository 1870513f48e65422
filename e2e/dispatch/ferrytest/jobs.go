package ferrytest

import (
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// OnWorker sends a Job to one worker.
func OnWorker(name string) rigtest.Option { return WithSelector("name=" + name) }

// WithSelector sends a Job to the workers with these labels.
func WithSelector(selector string) rigtest.Option {
	return func(j *batchv1.Job) {
		if j.Annotations == nil {
			j.Annotations = map[string]string{}
		}
		j.Annotations[v1alpha1.AnnotationClusterSelector] = selector
	}
}

// Job makes a Job for Jobferry in this test's namespace.
func (f *Ferry) Job(name string, options ...rigtest.Option) *batchv1.Job {
	ours := []rigtest.Option{rigtest.ManagedBy(v1alpha1.ManagedByDispatcher), WithSelector("pool=main")}
	return rigtest.Job(f.NS, name, append(ours, options...)...)
}

// Submit creates a Job for Jobferry on the hub.
func (f *Ferry) Submit(name string, options ...rigtest.Option) *batchv1.Job {
	f.t.Helper()
	return f.Create(f.Hub, f.Job(name, options...))
}

// Delete deletes a Job on the hub, and doesn't wait.
func (f *Ferry) Delete(name string, propagation metav1.DeletionPropagation) {
	f.t.Helper()
	err := f.Hub.Client().BatchV1().Jobs(f.NS).Delete(f.Context(), name, metav1.DeleteOptions{PropagationPolicy: &propagation})
	if err != nil {
		f.t.Fatal(err)
	}
}

// Patch merges JSON into a Job on the hub.
func (f *Ferry) Patch(name, patch string) *batchv1.Job {
	f.t.Helper()
	return f.PatchIn(f.Hub, types.MergePatchType, name, patch)
}

// Keep changes what the manager keeps of a Job on the hub, as somebody could without the policies:
// in the manager's name.
func (f *Ferry) Keep(name string, changes hubstate.Changes) *batchv1.Job {
	f.t.Helper()
	config := f.Hub.RESTConfig()
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + v1alpha1.SystemNamespace + ":jobferry-manager", Groups: []string{"system:masters", "system:authenticated"},
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		f.t.Fatal(err)
	}
	var job *batchv1.Job
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		job, err = client.BatchV1().Jobs(f.NS).Get(f.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		hubstate.Set(job, changes)
		job, err = client.BatchV1().Jobs(f.NS).UpdateStatus(f.Context(), job, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return job
}

// PatchMirror merges JSON into a mirror, as somebody in the worker would.
func (f *Ferry) PatchMirror(worker, name, patch string) *batchv1.Job {
	f.t.Helper()
	return f.PatchIn(f.Cluster(worker), types.MergePatchType, name, patch)
}

// PatchIn patches a Job of this test's namespace in a cluster.
func (f *Ferry) PatchIn(c *rig.Cluster, kind types.PatchType, name, patch string, subresources ...string) *batchv1.Job {
	f.t.Helper()
	job, err := c.Client().BatchV1().Jobs(f.NS).Patch(f.Context(), name, kind, []byte(patch), metav1.PatchOptions{}, subresources...)
	if err != nil {
		f.t.Fatal(err)
	}
	return job
}

// HubJobUntil waits until a condition holds for a Job on the hub.
func (f *Ferry) HubJobUntil(name string, condition func(*batchv1.Job) bool) *batchv1.Job {
	f.t.Helper()
	return f.JobUntil(f.Hub, f.NS, name, condition)
}

// HubJobGone waits until a Job doesn't exist on the hub.
func (f *Ferry) HubJobGone(name string) {
	f.t.Helper()
	f.JobGone(f.Hub, f.NS, name)
}

// MirrorUntil waits until a condition holds for the Job of that name in a worker.
func (f *Ferry) MirrorUntil(worker, name string, condition func(*batchv1.Job) bool) *batchv1.Job {
	f.t.Helper()
	return f.JobUntil(f.Cluster(worker), f.NS, name, condition)
}

// MirrorGone waits until a worker has no Job of that name.
func (f *Ferry) MirrorGone(worker, name string) {
	f.t.Helper()
	f.JobGone(f.Cluster(worker), f.NS, name)
}

// AssignedWorker waits until a Job has been placed, and returns its worker.
func (f *Ferry) AssignedWorker(name string) string {
	f.t.Helper()
	return ClusterOf(f.HubJobUntil(name, func(j *batchv1.Job) bool { return ClusterOf(j) != "" }))
}

// ClusterOf returns the worker that a hub Job is placed on, the names of several joined by commas,
// or "".
func ClusterOf(job *batchv1.Job) string { return strings.Join(shards.WorkersOf(job), ",") }

// IsAt says whether a hub Job is placed on a worker, and on no other.
func IsAt(worker string) func(*batchv1.Job) bool {
	return func(j *batchv1.Job) bool { return ClusterOf(j) == worker }
}

// Exists is true for any Job.
func Exists(*batchv1.Job) bool { return true }

// Suspended says whether a Job shows that it's suspended.
func Suspended(j *batchv1.Job) bool { return rigtest.HasCondition(batchv1.JobSuspended)(j) }

// All is true when all of its conditions are.
func All(conditions ...func(*batchv1.Job) bool) func(*batchv1.Job) bool {
	return func(j *batchv1.Job) bool {
		for _, holds := range conditions {
			if !holds(j) {
				return false
			}
		}
		return true
	}
}

// Pods lists the Pods of this test's namespace in a cluster.
func (f *Ferry) Pods(c *rig.Cluster) []corev1.Pod {
	f.t.Helper()
	pods, err := c.Client().CoreV1().Pods(f.NS).List(f.Context(), metav1.ListOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return pods.Items
}

// PodUntil waits until a condition holds for a Pod of a Job in a cluster.
func (f *Ferry) PodUntil(in *rig.Cluster, job string, condition func(*corev1.Pod) bool) *corev1.Pod {
	f.t.Helper()
	return f.Until(rig.Objects(in.Client().CoreV1().RESTClient(), "pods", f.NS), func(o runtime.Object) bool {
		pod, is := o.(*corev1.Pod)
		return is && pod.Labels[batchv1.JobNameLabel] == job && condition(pod)
	}).(*corev1.Pod)
}

// PatchPod patches a Pod in a worker, as somebody there would.
func (f *Ferry) PatchPod(worker, name, patch string) {
	f.t.Helper()
	_, err := f.Cluster(worker).Client().CoreV1().Pods(f.NS).Patch(f.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
}

// EndPod ends a Pod in a worker well, as its kubelet would.
func (f *Ferry) EndPod(worker, name string) {
	f.t.Helper()
	const ended = `{"status":{"phase":"Succeeded"}}`
	_, err := f.Cluster(worker).Client().CoreV1().Pods(f.NS).Patch(f.Context(), name, types.MergePatchType, []byte(ended), metav1.PatchOptions{}, "status")
	if err != nil {
		f.t.Fatal(err)
	}
}

// PodsUntil waits until a condition holds for each of some Pods in a worker; nil: the Pod is gone.
func (f *Ferry) PodsUntil(worker string, pods []corev1.Pod, condition func(*corev1.Pod) bool) {
	f.t.Helper()
	client := f.Cluster(worker).Client().CoreV1().RESTClient()
	for i := range pods {
		f.Until(rig.Object(client, "pods", f.NS, pods[i].Name), func(o runtime.Object) bool {
			pod, _ := o.(*corev1.Pod)
			return condition(pod)
		})
	}
}

// PodsGone waits until a worker has none of some Pods.
func (f *Ferry) PodsGone(worker string, pods []corev1.Pod) {
	f.t.Helper()
	f.PodsUntil(worker, pods, func(p *corev1.Pod) bool { return p == nil })
}

// EventUntil waits for an event on a hub Job with a reason and a text in its note, and returns the
// note.
func (f *Ferry) EventUntil(name, reason, text string) string {
	f.t.Helper()
	return f.EventOn(f.NS, name, reason, text)
}

// EventOn waits for an event on anything in a namespace of the hub.
func (f *Ferry) EventOn(namespace, name, reason, text string) string {
	f.t.Helper()
	all := rig.Objects(f.Hub.Client().EventsV1().RESTClient(), "events", namespace)
	return f.Until(all, func(o runtime.Object) bool {
		e, ok := o.(*eventsv1.Event)
		return ok && e.Regarding.Name == name && e.Reason == reason && strings.Contains(e.Note, text)
	}).(*eventsv1.Event).Note
}

// HasEvent says whether there is an event on a hub Job with that reason and that text now.
func (f *Ferry) HasEvent(name, reason, text string) bool {
	f.t.Helper()
	list, err := f.Hub.Client().EventsV1().Events(f.NS).List(f.Context(), metav1.ListOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	for _, e := range list.Items {
		if e.Regarding.Name == name && e.Reason == reason && strings.Contains(e.Note, text) {
			return true
		}
	}
	return false
}
