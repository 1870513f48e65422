package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/lru"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/turns"
	"github.com/jobferry/jobferry/pkg/worker/plan"
)

var (
	errKilled = errors.New("the process was killed")
	jobKey    = types.NamespacedName{Namespace: "ns", Name: "job"}
	noon      = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
)

// cluster is an API server in memory with one namespace, and the reconcilers, which can be killed
// at any of their writes.
type cluster struct {
	t      *testing.T
	api    client.WithWatch // as users and kubelets see it
	clock  *testingclock.FakeClock
	events *record.FakeRecorder

	lock       sync.Mutex
	writes     []string // what the reconcilers have sent
	writesLeft int      // -1: it is never killed
	refuse     func(verb string, obj client.Object) error
	uids       int
	written    func()                 // is called after each write
	turns      []types.NamespacedName // of large Jobs, and of templates
	readers    []types.NamespacedName // whose turn it is to read the metadata of a Job

	jobs    *reconciler
	orphans *orphans
}

func newCluster(t *testing.T, o Options, objects ...client.Object) *cluster {
	t.Helper()
	c := &cluster{t: t, clock: testingclock.NewFakeClock(noon), writesLeft: -1, written: func() {}}
	// Deduced types are enough, and much faster to set up than the real ones.
	c.api = fake.NewClientBuilder().WithTypeConverters(managedfields.NewDeducedTypeConverter()).WithStatusSubresource(&batchv1.Job{}, &corev1.Pod{}).
		WithIndex(&corev1.Pod{}, controllerIndex, indexPod).WithObjects(objects...).Build()
	c.start(o)
	return c
}

// start makes the reconcilers of a new process.
func (c *cluster) start(o Options) {
	c.t.Helper()
	o = o.withDefaults()
	m, err := newMetrics(prometheus.NewRegistry(), o.MetricsPrefix)
	if err != nil {
		c.t.Fatal(err)
	}
	c.events = record.NewFakeRecorder(10_000)
	cl := interceptor.NewClient(c.api, interceptor.Funcs{
		Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			err := w.Get(ctx, key, obj, opts...)
			switch obj := obj.(type) {
			case *corev1.Pod:
				*obj = *slimmed(c.t, obj, o)
			case *batchv1.Job:
				*obj = *slimJob(c.t, obj, o)
			}
			return err
		},
		List: func(ctx context.Context, w client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := w.List(ctx, list, opts...)
			if pods, ok := list.(*corev1.PodList); ok {
				for i := range pods.Items {
					pods.Items[i] = *slimmed(c.t, &pods.Items[i], o)
				}
			}
			return err
		},
		Create: func(ctx context.Context, w client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return c.send("create", obj, func() error { return w.Create(ctx, c.named(obj), opts...) })
		},
		Delete: func(ctx context.Context, w client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return c.send("delete", obj, func() error { return w.Delete(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, w client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			return c.send("patch", obj, func() error { return w.Patch(ctx, obj, p, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, _ client.Client, _ string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			return c.send("status", obj, func() error { return c.updateStatus(ctx, obj, opts...) })
		},
	})
	pods := podWriter{client: cl, finalizer: o.TrackingFinalizer}
	c.jobs = &reconciler{
		client: cl, live: c.api, cached: listedPods{c.t, func() client.Reader { return c.jobs.client }}, pods: pods, events: c.events, metrics: m, options: o, clock: clock.PassiveClock(c.clock),
		metadata: jobMetadata{c.api, waitsForTurn(&c.readers)}, memory: newMemory(), queue: &delays{},
		large: waitsForTurn(&c.turns), largeFenced: turns.NewTurn(func(types.NamespacedName) {}), templates: waitsForTurn(&c.turns),
	}
	c.orphans = &orphans{client: cl, metadata: jobMetadata{c.api, waitsForTurn(&c.readers)}, cached: listedPods{c.t, func() client.Reader { return c.orphans.client }}, pods: pods, options: o, gone: lru.New(goneJobs)}
}

// waitsForTurn is a turn that notes who is enqueued.
func waitsForTurn(enqueued *[]types.NamespacedName) *turns.Turn {
	return turns.NewTurn(func(key types.NamespacedName) { *enqueued = append(*enqueued, key) })
}

// listedPods takes what a reconciler's client reads for the cache.
type listedPods struct {
	t      *testing.T
	client func() client.Reader
}

func (l listedPods) pod(name types.NamespacedName) (*corev1.Pod, error) {
	var p corev1.Pod
	if err := l.client().Get(l.t.Context(), name, &p); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return &p, nil
}

func (l listedPods) podsBy(value string) (pods []*corev1.Pod, err error) {
	var list corev1.PodList
	err = l.client().List(l.t.Context(), &list, client.MatchingFields{controllerIndex: value})
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	return pods, err
}

// slimmed is a Pod as the cache has it.
func slimmed(t *testing.T, p *corev1.Pod, all ...Options) *corev1.Pod {
	t.Helper()
	slim, err := slimming(all).pod(p)
	if err != nil {
		t.Fatal(err)
	}
	return slim.(*corev1.Pod)
}

// slimJob is a Job as the cache has it.
func slimJob(t *testing.T, job *batchv1.Job, all ...Options) *batchv1.Job {
	t.Helper()
	slim, err := slimming(all).job(job)
	if err != nil {
		t.Fatal(err)
	}
	return slim.(*batchv1.Job)
}

// updateStatus takes the metadata of a Job along with its status, as an API server does, but not
// the fake one.
func (c *cluster) updateStatus(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	if job, ok := obj.(*batchv1.Job); ok {
		status := *job.Status.DeepCopy()
		if err := c.api.Update(ctx, job); err != nil {
			return err
		}
		job.Status = status
	}
	return c.api.Status().Update(ctx, obj, opts...)
}

// named gives a new object what an API server would.
func (c *cluster) named(obj client.Object) client.Object {
	c.uids++
	obj.SetUID(types.UID(fmt.Sprintf("uid-%d", c.uids)))
	if prefix := obj.GetGenerateName(); prefix != "" {
		obj.SetName(fmt.Sprintf("%s%05d", prefix, c.uids))
	}
	obj.SetCreationTimestamp(metav1.NewTime(c.clock.Now()))
	return obj
}

func (c *cluster) send(verb string, obj client.Object, do func() error) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.writesLeft == 0 {
		return errKilled
	}
	c.writesLeft--
	if c.refuse != nil {
		if err := c.refuse(verb, obj); err != nil {
			return err
		}
	}
	err := do()
	c.writes = append(c.writes, verb+" "+obj.GetName())
	c.written()
	return err
}

// sync reconciles the Job once.
func (c *cluster) sync() (reconcile.Result, error) {
	return c.jobs.Reconcile(c.t.Context(), reconcile.Request{NamespacedName: jobKey})
}

func (c *cluster) mustSync() reconcile.Result {
	c.t.Helper()
	result, err := c.sync()
	if err != nil {
		c.t.Fatal(err)
	}
	return result
}

func (c *cluster) job() *batchv1.Job {
	c.t.Helper()
	var job batchv1.Job
	if err := c.api.Get(c.t.Context(), jobKey, &job); err != nil {
		c.t.Fatal(err)
	}
	return &job
}

func (c *cluster) pods() []corev1.Pod {
	c.t.Helper()
	var pods corev1.PodList
	if err := c.api.List(c.t.Context(), &pods); err != nil {
		c.t.Fatal(err)
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods.Items
}

// end reports the Pod's end as a kubelet does.
func (c *cluster) end(p *corev1.Pod, code int32) {
	c.t.Helper()
	p.Status.Phase = corev1.PodSucceeded
	if code != 0 {
		p.Status.Phase = corev1.PodFailed
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.NewTime(c.clock.Now())},
	}}}
	if err := c.api.Status().Update(c.t.Context(), p); err != nil {
		c.t.Fatal(err)
	}
	c.written()
}

func (c *cluster) eventCount(reason string) int {
	n := 0
	for range len(c.events.Events) {
		e := <-c.events.Events
		if strings.Contains(e, " "+reason+" ") {
			n++
		}
		c.events.Events <- e
	}
	return n
}

// aJob is a Job of ours, as the API server would have completed it.
func aJob(edits ...func(*batchv1.Job)) *batchv1.Job {
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job", UID: "job-uid"},
		Spec: batchv1.JobSpec{
			ManagedBy: ptr.To("jobferry.dev/worker"), Parallelism: ptr.To[int32](2), Completions: ptr.To[int32](3), BackoffLimit: ptr.To[int32](6),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"job": "job-uid"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"job": "job-uid"}},
				Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main"}}},
			},
		},
	}
	for _, edit := range edits {
		edit(job)
	}
	return job
}

// aPod is a Pod of aJob.
func aPod(name string, edits ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID(name), Labels: map[string]string{"job": "job-uid"},
			Finalizers:      []string{v1alpha1.FinalizerJobTracking},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(aJob(), batchv1.SchemeGroupVersion.WithKind("Job"))},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, edit := range edits {
		edit(p)
	}
	return p
}

func finished(job *batchv1.Job) batchv1.JobConditionType {
	if end := plan.Finished(job); end != nil {
		return end.Type
	}
	return ""
}
