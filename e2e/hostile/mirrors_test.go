package hostile_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager"
)

// foreign is a finalizer that the adversary keeps Jobs with.
const foreign = "example.org/hostile"

// begin starts the manager, and registers all workers.
func begin(t *testing.T, edits ...func(*manager.Options)) (*ferrytest.Ferry, *ferrytest.Manager) {
	t.Helper()
	f := ferrytest.For(t)
	m := f.RunManager(edits...)
	for _, worker := range []string{"w1", "w2", hostile} {
		f.LeaveWorker(worker)
	}
	f.Register("w1", "w2", hostile)
	return f, m
}

// impatient has the manager wait for two seconds, and for no grace period (see quickly).
func impatient(o *manager.Options) { o.Timing.ReleaseTimeout = 2 * time.Second }

func quickly(j *batchv1.Job) { j.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](0) }

// keep puts a finalizer on a Job in the worker, until the test has ended.
func keep(t *testing.T, f *ferrytest.Ferry, name string) {
	t.Helper()
	f.PatchMirror(hostile, name, `{"metadata":{"finalizers":["`+foreign+`"]}}`)
	t.Cleanup(func() { free(t, f, name) })
}

// free removes all finalizers of a Job in the worker.
func free(t *testing.T, f *ferrytest.Ferry, name string) {
	_, err := f.Cluster(hostile).Kubectl(t.Context(), "", "patch", "job", "-n", f.NS, name, "--type=merge", `-p={"metadata":{"finalizers":null}}`)
	if err != nil && !strings.Contains(err.Error(), "NotFound") && t.Context().Err() == nil {
		t.Error(err)
	}
}

// forge makes a Job in the worker that looks like a mirror of a hub Job, and keeps it.
func forge(t *testing.T, f *ferrytest.Ferry, name, hubUID string) {
	t.Helper()
	hub, err := f.Hub.Client().CoreV1().Namespaces().Get(f.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.NS}}
	if _, err := f.Cluster(hostile).Client().CoreV1().Namespaces().Create(f.Context(), ns, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	f.Create(f.Cluster(hostile), rigtest.Job(f.NS, name, rigtest.RunForever(), func(j *batchv1.Job) {
		j.Labels = map[string]string{v1alpha1.LabelOrigin: string(hub.UID)}
		j.Annotations = map[string]string{v1alpha1.AnnotationHubUID: hubUID}
		j.Finalizers = []string{foreign}
	}))
	t.Cleanup(func() { free(t, f, name) })
}

// isBeingDeleted says whether the manager has deleted what the adversary keeps.
func isBeingDeleted(j *batchv1.Job) bool { return j.DeletionTimestamp != nil }

// The adversary has Jobs that look like mirrors, of a Job of w1 or of an earlier one of its name,
// and keeps them. The Job is placed, runs, ends and is deleted as ever, and nothing says that it is
// waited for.
func TestForgedMirrorsDelayNobody(t *testing.T) {
	f, _ := begin(t)
	forge(t, f, "before", "made-up")
	f.Submit("before", ferrytest.OnWorker("w1"))
	hub := f.Submit("after", ferrytest.OnWorker("w1"), rigtest.RunForever())
	f.HubJobUntil("after", rigtest.Running(1))
	forge(t, f, "after", string(hub.UID))
	for _, name := range []string{"before", "after"} {
		f.MirrorUntil(hostile, name, isBeingDeleted)
	}
	f.HubJobUntil("before", rigtest.Complete)
	f.Patch("after", `{"spec":{"parallelism":0}}`)
	f.MirrorUntil("w1", "after", func(j *batchv1.Job) bool { return *j.Spec.Parallelism == 0 })
	for _, name := range []string{"before", "after"} {
		f.Delete(name, metav1.DeletePropagationBackground)
		f.HubJobGone(name)
		f.MirrorGone("w1", name)
		if f.HasEvent(name, v1alpha1.EventNotReleased, "") {
			t.Errorf("%s was waited for", name)
		}
	}
}

// The adversary keeps the mirror of a Job that is deleted on the hub, and of one that is drained
// from its worker. The hub waits for some seconds.
func TestKeptMirrorsDelayForABound(t *testing.T) {
	f, m := begin(t, impatient)
	for _, name := range []string{"deleted", "moved"} {
		f.Submit(name, ferrytest.OnWorker(hostile), rigtest.RunForever(), quickly)
		f.MirrorUntil(hostile, name, rigtest.Running(1))
		keep(t, f, name)
	}
	f.Delete("deleted", metav1.DeletePropagationBackground)
	f.EventUntil("deleted", v1alpha1.EventNotReleased, "Worker hostile hasn't removed the Job "+f.NS+"/deleted within 2s")
	f.HubJobGone("deleted")
	f.Patch("moved", `{"metadata":{"annotations":{"`+v1alpha1.AnnotationClusterSelector+`":"name=w2"}}}`)
	f.HubJobUntil("moved", ferrytest.All(ferrytest.IsAt("w2"), rigtest.Running(1)))
	f.MirrorUntil("w2", "moved", rigtest.Running(1))
	f.EventUntil("moved", v1alpha1.EventNotReleased, "Worker hostile hasn't removed")
	if n := m.Metric("jobferry_unreleased_mirrors", "worker", hostile, "namespace", f.NS); n < 1 {
		t.Errorf("%v mirrors are unreleased, by the metric", n)
	}
	for _, name := range []string{"deleted", "moved"} {
		free(t, f, name)
		f.MirrorGone(hostile, name)
	}
}

// The adversary takes the name of a Job with one that looks like an earlier mirror, and keeps it.
// The Job goes to another worker.
func TestKeptNamesDelayForABound(t *testing.T) {
	f, _ := begin(t, impatient)
	forge(t, f, "job", "made-up")
	f.Submit("job", ferrytest.OnWorker(hostile), quickly)
	f.HubJobUntil("job", ferrytest.IsAt(hostile))
	f.Patch("job", `{"metadata":{"annotations":{"`+v1alpha1.AnnotationClusterSelector+`":"name in (hostile,w1)"}}}`)
	f.HubJobUntil("job", ferrytest.All(ferrytest.IsAt("w1"), rigtest.Complete))
}

// The adversary asks for Secrets by what it writes into a mirror. Its WorkerCluster allows none to
// be carried, and it gets none.
func TestTheHubAloneSaysWhatIsCarried(t *testing.T) {
	f, _ := begin(t)
	password := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "password"}, StringData: map[string]string{"key": "value"}}
	if _, err := f.Hub.Client().CoreV1().Secrets(f.NS).Create(f.Context(), password, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.Submit("job", ferrytest.OnWorker(hostile), rigtest.RunForever(), func(j *batchv1.Job) {
		j.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "password"}, Optional: ptr.To(true),
		}}}
	})
	f.MirrorUntil(hostile, "job", rigtest.Running(1))
	f.PatchMirror(hostile, "job", `{"metadata":{"annotations":{"jobferry.dev/carry":"ConfigMap,Secret,ServiceAccount"}}}`)
	f.Patch("job", `{"spec":{"suspend":true}}`)
	f.HubJobUntil("job", ferrytest.Suspended) // the manager has seen the annotation
	secrets, err := f.Cluster(hostile).Client().CoreV1().Secrets(f.NS).List(f.Context(), metav1.ListOptions{})
	if err != nil || len(secrets.Items) > 0 {
		t.Errorf("the worker has %d Secrets, %v", len(secrets.Items), err)
	}
	requests, err := f.Hub.Requests()
	if err != nil {
		t.Fatal(err)
	}
	isRead := func(r rig.Request) bool {
		return r.Object.Resource == "secrets" && r.Object.Namespace == f.NS && strings.HasPrefix(r.UserAgent, ferrytest.UserAgent)
	}
	if slices.ContainsFunc(requests, isRead) {
		t.Error("the manager read the Secret")
	}
}
