package hostile_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager"
)

// tenant is a user of the hub who may create Jobs in some of its namespaces, and no more.
type tenant struct {
	*ferrytest.Ferry
	t *testing.T
}

// tenantFor is a tenant of a hub with a manager and two workers.
func tenantFor(t *testing.T, edits ...func(*manager.Options)) tenant {
	t.Helper()
	f := tenant{ferrytest.For(t), t}
	f.RunManager(edits...)
	f.Register("w1", "w2")
	return f
}

// noticesSoon has the hub Job say soon why it has no Pods.
func noticesSoon(o *manager.Options) { o.Timing.StuckNotice = time.Second }

// label has an admin of the hub label a namespace, until the test ends.
func (f tenant) label(namespace, key, value string) {
	f.t.Helper()
	f.Kubectl(f.Hub, "", "label", "--overwrite", "namespace", namespace, key+"="+value)
	f.t.Cleanup(func() {
		if _, err := f.Hub.Kubectl(context.Background(), "", "label", "namespace", namespace, key+"-"); err != nil {
			f.t.Error(err)
		}
	})
}

// othersRun waits until the Job of another tenant has run: the manager has had its time by then.
func (f tenant) othersRun() {
	f.t.Helper()
	other := f.LabelledNamespace(ferrytest.Dispatched, f.Hub)
	f.Create(f.Hub, f.Job("other", func(j *batchv1.Job) { j.Namespace = other }))
	f.JobUntil(f.Hub, other, "other", rigtest.Complete)
}

// hasNoMirrors fails if any worker has a Job in a namespace.
func (f tenant) hasNoMirrors(namespace string) {
	f.t.Helper()
	for _, worker := range []string{"w1", "w2", hostile} {
		f.hasNoMirrorsIn(worker, namespace)
	}
}

func (f tenant) hasNoMirrorsIn(worker, namespace string) {
	f.t.Helper()
	jobs, err := f.Cluster(worker).Client().BatchV1().Jobs(namespace).List(f.Context(), metav1.ListOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	for _, job := range jobs.Items {
		f.t.Errorf("worker %s has Job %s/%s", worker, namespace, job.Name)
	}
}

// patchWorker has an admin of the hub change a WorkerCluster, also when the test has ended.
func (f tenant) patchWorker(worker, patch string) {
	f.t.Helper()
	if _, err := f.Hub.Kubectl(context.Background(), "", "patch", "workercluster", worker, "--type=merge", "-p", patch); err != nil {
		f.t.Error(err)
	}
}

// placedByItsUser writes what the manager writes when it places a Job.
func placedByItsUser(j *batchv1.Job) {
	j.Annotations[v1alpha1.AnnotationCluster] = "w1"
	j.Finalizers = append(j.Finalizers, v1alpha1.FinalizerMirror)
}

// On a hub without admission, a tenant names the dispatcher in a namespace that no admin has
// labelled, and writes the placement and the finalizer into the Job, too. The manager leaves the
// Job alone, and starts it when the namespace gets the label.
func TestNamespaceNotDispatched(t *testing.T) {
	f := tenantFor(t)
	f.NS = f.Namespace(f.Hub)
	names := []string{"plain", "suspended", "placed"}
	f.Submit("plain")
	f.Submit("suspended", rigtest.Suspended())
	f.Submit("placed", placedByItsUser)
	for _, name := range names {
		f.EventUntil(name, v1alpha1.EventNotDispatched, "an admin of the hub labels it jobferry.dev/dispatch=allowed")
	}
	f.othersRun()
	for _, name := range names[:2] {
		job := f.HubJobUntil(name, ferrytest.Exists)
		if len(job.Finalizers) > 0 || ferrytest.ClusterOf(job) != "" || len(job.Status.Conditions) > 0 {
			t.Errorf("the manager wrote to %s: finalizers %v, placement %q, status %v", name, job.Finalizers, ferrytest.ClusterOf(job), job.Status)
		}
	}
	f.hasNoMirrors(f.NS)

	f.Delete("placed", metav1.DeletePropagationBackground)
	f.HubJobGone("placed")
	f.LeaveWorker("w1")
	f.LeaveWorker("w2")
	f.label(f.NS, v1alpha1.LabelDispatch, v1alpha1.DispatchAllowed)
	f.HubJobUntil("plain", rigtest.Complete)
}

// A tenant who may create Jobs in the hub's kube-system, or in the manager's namespace, gets no
// Pods in the workers' namespaces of that name, even if somebody has labelled it, and if all
// namespaces are dispatched.
func TestSystemNamespacesAreNeverDispatched(t *testing.T) {
	for _, namespace := range []string{metav1.NamespaceSystem, ferrytest.SystemNamespace} {
		t.Run("namespace "+namespace, func(t *testing.T) {
			f := tenantFor(t, func(o *manager.Options) { o.DispatchAllNamespaces = true })
			f.label(namespace, v1alpha1.LabelDispatch, v1alpha1.DispatchEnabled)
			f.Create(f.Hub, f.Job("intruder", placedByItsUser, func(j *batchv1.Job) { j.Namespace = namespace }))
			f.EventOn(namespace, "intruder", v1alpha1.EventNotDispatched, "are never dispatched")
			f.othersRun()
			f.hasNoMirrors(namespace)
			f.Kubectl(f.Hub, "", "delete", "job", "intruder", "-n", namespace)
		})
	}
}

// The label is taken away while a Job runs: it continues, moves nowhere, and can be deleted.
func TestNamespaceLosesItsLabel(t *testing.T) {
	f := tenantFor(t)
	f.Submit("running", rigtest.RunForever())
	worker := f.AssignedWorker("running")
	f.LeaveWorker(worker)
	f.HubJobUntil("running", rigtest.Running(1))
	f.label(f.NS, v1alpha1.LabelDispatch, "no")
	f.Submit("later")
	f.EventUntil("later", v1alpha1.EventNotDispatched, `is "no", and must be allowed or enabled`)
	f.patchWorker(worker, `{"spec":{"drain":true}}`)
	t.Cleanup(func() { f.patchWorker(worker, `{"spec":{"drain":false}}`) })
	f.EventUntil("running", v1alpha1.EventPending, "not for Jobs of a namespace that isn't dispatched")
	f.HubJobUntil("running", ferrytest.All(ferrytest.IsAt(worker), rigtest.Running(1)))
	f.Delete("running", metav1.DeletePropagationForeground)
	f.HubJobGone("running")
	f.MirrorGone(worker, "running")
}

// What a tenant's namespace forbids on the hub, it forbids in the workers. A privileged Pod with
// the node's file system doesn't run there, and the hub Job says why.
func TestPodSecurityOfTheHubHoldsInWorkers(t *testing.T) {
	for name, level := range map[string]string{"restricted": "restricted", "without labels": ""} {
		t.Run(name, func(t *testing.T) {
			f := tenantFor(t, noticesSoon)
			const enforce = "pod-security.kubernetes.io/enforce"
			labels := map[string]string{v1alpha1.LabelDispatch: v1alpha1.DispatchAllowed, enforce: level}
			if level == "" {
				delete(labels, enforce)
				level = "baseline"
			}
			f.NS = f.LabelledNamespace(labels, f.Hub)
			f.Submit("breakout", ferrytest.OnWorker("w1"), ownsTheNode)
			f.LeaveWorker("w1")
			f.EventUntil("breakout", v1alpha1.EventPodsWaiting, `violates PodSecurity "`+level+`:latest"`)
			if pods := f.Pods(f.Cluster("w1")); len(pods) > 0 {
				t.Errorf("Pods run in the worker: %v", pods)
			}
		})
	}
}

// ownsTheNode has a Job's Pods be privileged, with the root file system of their node.
func ownsTheNode(j *batchv1.Job) {
	pod := &j.Spec.Template.Spec
	pod.Volumes = []corev1.Volume{{Name: "node", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
	pod.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "node", MountPath: "/node"}}
	pod.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
}

// A namespace that a worker has already keeps its labels, whatever the hub's says.
func TestNamespacesOfWorkersAreNeverRelabelled(t *testing.T) {
	f := tenantFor(t, noticesSoon)
	f.NamespaceIn("w1")
	f.label(f.NS, "pod-security.kubernetes.io/enforce", "privileged")
	f.Kubectl(f.Cluster("w1"), "", "label", "namespace", f.NS, "pod-security.kubernetes.io/enforce=restricted")
	f.Submit("breakout", ferrytest.OnWorker("w1"), ownsTheNode)
	f.EventUntil("breakout", v1alpha1.EventPodsWaiting, `violates PodSecurity "restricted:latest"`)
}

// A worker reports more room than any other, and gets no Job of a tenant whose namespace its
// namespaceSelector doesn't match.
func TestWorkerCannotAttractJobsOfOtherNamespaces(t *testing.T) {
	f := tenantFor(t)
	f.Register(hostile)
	f.t.Cleanup(func() { f.patchWorker(hostile, `{"spec":{"weight":1,"namespaceSelector":null}}`) })
	schedulable := func(is metav1.ConditionStatus) func(*v1alpha1.WorkerCluster) bool {
		return func(w *v1alpha1.WorkerCluster) bool {
			return meta.IsStatusConditionPresentAndEqual(w.Status.Conditions, v1alpha1.ConditionSchedulable, is)
		}
	}
	// it is taken note of when the worker is schedulable again
	f.patchWorker(hostile, `{"spec":{"cordoned":true}}`)
	f.WorkerUntil(hostile, schedulable(metav1.ConditionFalse))
	f.patchWorker(hostile, `{"spec":{"cordoned":false,"weight":1000,"namespaceSelector":{"matchLabels":{"team":"lab"}}}}`)
	f.WorkerUntil(hostile, schedulable(metav1.ConditionTrue))
	f.LeaveWorker("w1")
	f.LeaveWorker("w2")
	for i := range 10 {
		name := fmt.Sprint("job-", i)
		f.Submit(name)
		if worker := f.AssignedWorker(name); worker == hostile {
			t.Errorf("%s is placed on worker %s", name, worker)
		}
	}
	f.Submit("choosy", ferrytest.OnWorker(hostile))
	f.EventUntil("choosy", v1alpha1.EventPending, hostile+": not for Jobs of this namespace")
	f.hasNoMirrorsIn(hostile, f.NS)

	// The Job starts when the namespace gets the label, which is the admin's.
	f.LeaveWorker(hostile)
	f.label(f.NS, "team", "lab")
	f.HubJobUntil("choosy", ferrytest.IsAt(hostile))
}

// What isn't a selector is refused, or matches nothing.
func TestNamespaceSelectorInvalid(t *testing.T) {
	f := tenantFor(t)
	for selector, want := range map[string]string{
		`{"matchExpressions":[{"key":"team","operator":"in","values":["a"]}]}`:     "operator must be In, NotIn, Exists or DoesNotExist",
		`{"matchExpressions":[{"key":"team","operator":"In"}]}`:                    "operators In and NotIn need values",
		`{"matchExpressions":[{"key":"team","operator":"Exists","values":["a"]}]}`: "Exists and DoesNotExist have none",
	} {
		_, err := f.Hub.Kubectl(f.Context(), "", "patch", "workercluster", "w2", "--type=merge", "-p", `{"spec":{"namespaceSelector":`+selector+`}}`)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", selector, err, want)
		}
	}
	t.Cleanup(func() { f.patchWorker("w2", `{"spec":{"namespaceSelector":null}}`) })
	f.patchWorker("w2", `{"spec":{"namespaceSelector":{"matchLabels":{"a b":"c"}}}}`)
	f.WorkerUntil("w2", func(w *v1alpha1.WorkerCluster) bool {
		c := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionSchedulable)
		return c != nil && c.Reason == v1alpha1.ReasonNamespaceSelectorInvalid && strings.Contains(c.Message, "spec.namespaceSelector")
	})
	f.Submit("job", ferrytest.OnWorker("w2"))
	f.EventUntil("job", v1alpha1.EventPending, "w2: not for Jobs of this namespace")
}
