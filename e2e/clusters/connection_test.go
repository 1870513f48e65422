package clusters

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
)

func cpus(n int64) *resource.Quantity { return resource.NewQuantity(n, resource.DecimalSI) }

// mirrored creates a Job of the hub's origin in a worker, and waits until the manager sees it.
func (h *hub) mirrored(in *rig.Cluster, worker, namespace, name string) types.NamespacedName {
	h.t.Helper()
	key := types.NamespacedName{Namespace: namespace, Name: name}
	heard := h.placed.next(key)
	job := rigtest.Job(namespace, name)
	job.Labels = map[string]string{v1alpha1.LabelOrigin: string(h.options.Origin)}
	job.Annotations = map[string]string{v1alpha1.AnnotationHubUID: "any"} // without it, it's no mirror
	h.Create(in, job)
	h.untilClosed(heard)
	w := h.worker(worker)
	if _, ok := w.Mirror(key); !ok {
		h.t.Errorf("the Job %s isn't in the cache of %s", key, worker)
	}
	return key
}

func (h *hub) untilClosed(c <-chan struct{}) {
	h.t.Helper()
	select {
	case <-c:
	case <-h.Context().Done():
		h.t.Fatal("no news")
	}
}

func (h *hub) worker(name string) *clusters.Worker {
	h.t.Helper()
	w, ok := h.registry.Get(name)
	if !ok {
		h.t.Fatalf("no worker %s", name)
	}
	return w
}

func TestMirrorsOfThisOriginAreSeen(t *testing.T) {
	h := newHub(t)
	h.register("w1", h.Cluster("w1").KubeconfigBytes())
	h.until("w1", ready(v1alpha1.ReasonConnected))
	namespace := h.Namespace(h.Cluster("w1"))
	h.Create(h.Cluster("w1"), rigtest.Job(namespace, "foreign"))
	key := h.mirrored(h.Cluster("w1"), "w1", namespace, "ours")
	w := h.worker("w1")
	if got := w.Mirrors(); len(got) != 1 || got[0].Key != key {
		t.Errorf("mirrors: %v", got)
	}
	if m, ok := w.Mirror(key); !ok || len(m.ManagedFields) > 0 {
		t.Errorf("the mirror is %v", m)
	}
	var job batchv1.Job
	h.check(w.Client().Get(h.Context(), key, &job))
	heard := h.placed.next(key)
	h.check(w.Client().Delete(h.Context(), &job, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	h.untilClosed(heard)
}

func TestRotatedCredentialsKeepWhatIsKnown(t *testing.T) {
	h := newHub(t)
	cluster := h.Cluster("w1")
	namespace := h.Namespace(cluster)
	first, second := h.account(cluster, namespace, "first"), h.account(cluster, namespace, "second")
	h.register("w1", first)
	h.until("w1", ready(v1alpha1.ReasonConnected))
	h.edit("w1", func(s *v1alpha1.WorkerClusterSpec) { s.Weight = 7 })
	before := h.worker("w1")
	h.mirrored(cluster, "w1", namespace, "a")

	h.rotate("w1", second)
	h.check(cluster.Client().CoreV1().ServiceAccounts(namespace).Delete(h.Context(), "first", metav1.DeleteOptions{}))
	h.mirrored(cluster, "w1", namespace, "b")
	if h.worker("w1") != before || len(before.Mirrors()) != 2 {
		t.Errorf("mirrors after the rotation: %d", len(before.Mirrors()))
	}
	wc := h.until("w1", ready(v1alpha1.ReasonConnected))
	if wc.Spec.Weight != 7 {
		t.Errorf("the spec was changed: %+v", wc.Spec)
	}
	h.rotate("w1", h.Cluster("w2").KubeconfigBytes())
	h.until("w1", ready(v1alpha1.ReasonClusterChanged))
	h.rotate("w1", second)
	h.until("w1", ready(v1alpha1.ReasonConnected))
}

// account makes a ServiceAccount that may do everything, and gives its kubeconfig.
func (h *hub) account(in *rig.Cluster, namespace, name string) []byte {
	h.t.Helper()
	return h.accountAs(in, namespace, name, "cluster-admin")
}

func (h *hub) accountAs(in *rig.Cluster, namespace, name, role string) []byte {
	h.t.Helper()
	_, err := in.Client().CoreV1().ServiceAccounts(namespace).Create(h.Context(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
	}, metav1.CreateOptions{})
	h.check(err)
	_, err = in.Client().RbacV1().ClusterRoleBindings().Create(h.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: name}},
	}, metav1.CreateOptions{})
	h.check(err)
	kubeconfig, err := in.ServiceAccountKubeconfig(h.Context(), namespace, name)
	h.check(err)
	return kubeconfig
}

func TestMissingPermissionsAreNamed(t *testing.T) {
	h := newHub(t)
	cluster := h.Cluster("w1")
	namespace := h.Namespace(cluster)
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}},
			{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"*"}},
		},
	}
	_, err := cluster.Client().RbacV1().ClusterRoles().Create(h.Context(), role, metav1.CreateOptions{})
	h.check(err)
	h.register("w1", h.accountAs(cluster, namespace, "few", namespace))
	h.until("w1", ready(v1alpha1.ReasonConnected))
	wc := h.until("w1", schedulable(v1alpha1.ReasonCapacityUnknown))
	t.Log(message(wc, v1alpha1.ConditionSchedulable))
	h.edit("w1", func(s *v1alpha1.WorkerClusterSpec) { s.Capacity = v1alpha1.CapacityUnlimited })
	h.until("w1", schedulable(v1alpha1.ReasonSchedulable))
}

func TestABlackHole(t *testing.T) {
	h := newHub(t)
	cluster := h.Cluster("w1")
	h.register("w1", cluster.ProxyKubeconfigBytes())
	h.register("w2", h.Cluster("w2").KubeconfigBytes())
	h.until("w1", ready(v1alpha1.ReasonConnected))
	h.until("w2", ready(v1alpha1.ReasonConnected))
	namespace := h.Namespace(cluster, h.Cluster("w2"))

	start := time.Now()
	cluster.Proxy().BlackHole()
	t.Cleanup(cluster.Proxy().Heal)
	lost := h.until("w1", ready(v1alpha1.ReasonUnreachable))
	h.mirrored(h.Cluster("w2"), "w2", namespace, "meanwhile")
	since := meta.FindStatusCondition(lost.Status.Conditions, v1alpha1.ConditionReady).LastTransitionTime
	if since.Time.Before(start.Truncate(time.Second)) {
		t.Errorf("lost since %v, before the black hole at %v", since, start)
	}
	h.stop()
	h.start() // the loss clock goes on where it was
	h.check(h.await(func() bool {
		w, ok := h.registry.Get("w1")
		return ok && w.View().State == clusters.Disconnected && w.View().Since.Equal(since.Time)
	}))

	key := types.NamespacedName{Namespace: namespace, Name: "unseen"}
	heard := h.placed.next(key)
	job := rigtest.Job(namespace, "unseen")
	job.Labels = map[string]string{v1alpha1.LabelOrigin: string(h.options.Origin)}
	job.Annotations = map[string]string{v1alpha1.AnnotationHubUID: "any"} // without it, it's no mirror
	h.Create(cluster, job)
	cluster.Proxy().Heal()
	h.until("w1", ready(v1alpha1.ReasonConnected))
	h.untilClosed(heard)
}

// await tries a condition until it holds or the test's time is over: for what nobody tells of.
func (h *hub) await(condition func() bool) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-h.Context().Done():
			return h.Context().Err()
		}
	}
	return nil
}

func TestAnAPIServersRestart(t *testing.T) {
	h := newHub(t)
	cluster := h.Cluster("w2")
	h.register("w2", cluster.KubeconfigBytes())
	h.until("w2", ready(v1alpha1.ReasonConnected))
	namespace := h.Namespace(cluster)
	h.check(cluster.Component("kube-apiserver").Kill())
	h.until("w2", ready(v1alpha1.ReasonUnreachable))
	h.check(cluster.Component("kube-apiserver").Start())
	h.check(cluster.Ready(h.Context()))
	h.until("w2", ready(v1alpha1.ReasonConnected))
	h.mirrored(cluster, "w2", namespace, "after")
}
