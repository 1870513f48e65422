package fence_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/product"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/e2e/worker/workertest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager"
	"github.com/jobferry/jobferry/pkg/worker/fence"
)

const (
	lease      = 2 * time.Second
	fenceAfter = 3 * time.Second
	// slack is what a busy machine may add to these durations.
	slack = 20 * time.Second
	// never is a time-out for lost workers that no test reaches.
	never = time.Hour
)

func TestMain(m *testing.M) {
	rigtest.Main(m,
		rig.Options{Name: ferrytest.HubName, Release: binaries.Hub(binaries.Current)},
		rig.Options{Name: "w1", Release: binaries.Worker(binaries.Current), FaultProxy: true, JobController: rig.None, Nodes: []rig.Nodes{{Count: 2}}},
		rig.Options{Name: "w2", Release: binaries.Worker(binaries.Current), Nodes: []rig.Nodes{{Count: 2}}},
	)
}

// scene is a hub whose worker w1 has the embedded controller.
type scene struct {
	*ferrytest.Ferry
	t      *testing.T
	w1     *rig.Cluster
	origin v1alpha1.Origin
	health string // address of jobferry-worker's health checks
}

// open starts jobferry-worker in w1, and the manager, and registers both workers.
func open(t *testing.T, lostTimeout time.Duration) *scene {
	t.Helper()
	s := &scene{Ferry: ferrytest.For(t), t: t}
	s.w1 = s.Cluster("w1")
	hub, err := s.Hub.Client().CoreV1().Namespaces().Get(s.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	s.ok(err)
	s.origin = v1alpha1.Origin(hub.UID)
	s.startWorker()
	s.NamespaceIn("w1")
	s.LeaveWorker("w2")
	t.Cleanup(s.w1.Proxy().Heal)
	s.manager(lostTimeout)
	s.Register("w1", "w2")
	s.SetWorker("w1", `{"jobController":"Embedded"}`)
	return s
}

func (s *scene) ok(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) startWorker() {
	s.t.Helper()
	file, err := product.Program("jobferry-worker")
	s.ok(err)
	s.health, err = rig.FreeAddress()
	s.ok(err)
	log := filepath.Join(s.t.TempDir(), "log")
	p, err := workertest.Start(file, s.w1.Kubeconfig(), log, "--fence-after="+fenceAfter.String(), "--sync-batch-period=100ms",
		"--health-probe-bind-address="+s.health)
	s.ok(err)
	s.t.Cleanup(func() {
		p.Kill()
		if text, err := os.ReadFile(log); s.t.Failed() && err == nil {
			s.t.Logf("log of jobferry-worker:\n%s", text)
		}
	})
}

func (s *scene) manager(lostTimeout time.Duration) *ferrytest.Manager {
	s.t.Helper()
	return s.RunManager(func(o *manager.Options) {
		o.Fence.Duration = lease
		o.Connection.WorkerLostTimeout = lostTimeout
		o.Connection.ProbeInterval, o.Connection.ProbeTimeout = 500*time.Millisecond, 500*time.Millisecond
		o.Connection.RetryDelay = 200 * time.Millisecond
	})
}

// fenced waits for the condition Fenced of w1.
func (s *scene) fenced(status metav1.ConditionStatus, reason string) *v1alpha1.WorkerCluster {
	s.t.Helper()
	return s.WorkerUntil("w1", func(w *v1alpha1.WorkerCluster) bool {
		c := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionFenced)
		return c != nil && c.Status == status && c.Reason == reason
	})
}

// leaseUntil waits until the Lease of an origin in w1 satisfies so; so(nil) means that there is
// none.
func (s *scene) leaseUntil(origin v1alpha1.Origin, so func(*coordinationv1.Lease) bool) {
	s.t.Helper()
	api := s.w1.Client().CoordinationV1().RESTClient()
	s.Until(rig.Object(api, "leases", v1alpha1.SystemNamespace, origin.FenceLease()), func(o runtime.Object) bool {
		l, _ := o.(*coordinationv1.Lease)
		return so(l)
	})
}

// renew renews an origin's Lease in w1 as its hub would, or creates it.
func (s *scene) renew(origin v1alpha1.Origin) {
	s.t.Helper()
	leases := s.w1.Client().CoordinationV1().Leases(v1alpha1.SystemNamespace)
	now := metav1.NowMicro()
	l, err := leases.Get(s.Context(), origin.FenceLease(), metav1.GetOptions{})
	if err == nil {
		l.Spec.RenewTime = &now
		_, err = leases.Update(s.Context(), l, metav1.UpdateOptions{})
	} else {
		seconds, holder := int32(lease/time.Second), "manager"
		_, err = leases.Create(s.Context(), &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: origin.FenceLease(), Labels: map[string]string{v1alpha1.LabelOrigin: string(origin)}},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now},
		}, metav1.CreateOptions{})
	}
	s.ok(err)
}

// deleteLease deletes an origin's Lease in w1, as an admin there may.
func (s *scene) deleteLease(origin v1alpha1.Origin) {
	s.t.Helper()
	s.ok(s.w1.Client().CoordinationV1().Leases(v1alpha1.SystemNamespace).Delete(s.Context(), origin.FenceLease(), metav1.DeleteOptions{}))
}

// isReleased reports whether a Lease is there that its hub has released.
func isReleased(l *coordinationv1.Lease) bool {
	if l == nil {
		return false
	}
	read, ours := fence.Read(l)
	return ours && read.Released
}

// local creates a Job in w1 without a hub, or one of another hub.
func (s *scene) local(name string, edits ...rigtest.Option) {
	s.t.Helper()
	s.Create(s.w1, rigtest.Job(s.NS, name, append(edits, rigtest.ManagedBy(v1alpha1.ManagedByWorker), rigtest.RunForever())...))
}

func ofOrigin(origin v1alpha1.Origin) rigtest.Option {
	return func(j *batchv1.Job) { j.Labels = map[string]string{v1alpha1.LabelOrigin: string(origin)} }
}

// running are the Pods of a Job in a cluster that haven't ended.
func (s *scene) running(c *rig.Cluster, job string) []corev1.Pod {
	s.t.Helper()
	list, err := c.Client().CoreV1().Pods(s.NS).List(s.Context(), metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + job})
	s.ok(err)
	var out []corev1.Pod
	for _, p := range list.Items {
		if !workertest.Ended(p) {
			out = append(out, p)
		}
	}
	return out
}

// stopped waits until a Job of w1 is fenced and none of its Pods is left.
func (s *scene) stopped(name string) *batchv1.Job {
	s.t.Helper()
	job := s.MirrorUntil("w1", name, func(j *batchv1.Job) bool {
		return v1alpha1.IsFenced(j) && j.Status.Active == 0 && j.Status.Terminating != nil && *j.Status.Terminating == 0
	})
	if pods := s.running(s.w1, name); len(pods) != 0 {
		s.t.Errorf("%d Pods run, none according to the status", len(pods))
	}
	return job
}

// unmark removes the fence's mark, as only the hub may.
func (s *scene) unmark(name string) {
	s.t.Helper()
	s.PatchIn(s.w1, types.MergePatchType, name, `{"metadata":{"annotations":{"`+v1alpha1.AnnotationFenced+`":null}}}`)
}

// keepRenewing renews the Lease of another hub until it's stopped.
func (s *scene) keepRenewing(origin v1alpha1.Origin) (stop func()) {
	s.renew(origin)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(lease / 4)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				now := metav1.NowMicro().UTC().Format(metav1.RFC3339Micro)
				_, err := s.w1.Client().CoordinationV1().Leases(v1alpha1.SystemNamespace).Patch(s.Context(), origin.FenceLease(),
					types.MergePatchType, []byte(`{"spec":{"renewTime":"`+now+`"}}`), metav1.PatchOptions{})
				if err != nil {
					s.t.Errorf("renew the Lease of %s: %v", origin, err)
				}
			}
		}
	}()
	return func() { close(done); <-ended }
}
