package plugin

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/workeraccess"
)

// From nothing to a Job that is Complete, with exactly the permissions of the table; again, with
// others; and back to nothing.
func TestRegister(t *testing.T) {
	f := terminalFor(t)
	f.RunManager()
	o := f.register("w1", "--carry", "ConfigMap")
	f.says(o.err, "worker: ServiceAccount", "created", "w1 is Ready: Kubernetes v1.36", "2 nodes")
	role := f.clusterRole("w1")
	want := workeraccess.ClusterRules(workeraccess.For(workeraccess.Settings{
		CreateNamespaces: true, Expires: true, Carry: []v1alpha1.CarriedKind{v1alpha1.CarryConfigMaps}, Logs: true, Exec: true,
	}))
	if !sameRules(role.Rules, want) {
		t.Errorf("the role has %v, want %v", role.Rules, want)
	}
	f.Submit("pi", ferrytest.OnWorker("w1"))
	f.HubJobUntil("pi", rigtest.Complete)
	f.says(f.ok("jobs", "pi").out, "w1", "Complete", "1/1")
	f.says(f.ok("clusters").out, "w1", "Ready", "v1.36", "[")

	again := f.ok("register", "w1", "--worker-context", "w1")
	if strings.Contains(again.err, " created") || strings.Contains(again.err, " changed") {
		t.Error("run again, it changes something")
	}
	f.WorkerUntil("w1", func(w *v1alpha1.WorkerCluster) bool {
		return len(w.Spec.Carry) == 1 && w.Labels["pool"] == "main"
	})

	f.ok("register", "w1", "--worker-context", "w1", "--carry", "", "--pod-access", "none", "--job-controller", "Embedded")
	if rules := f.clusterRole("w1").Rules; allows(rules, "configmaps") || allows(rules, "pods/exec") || allows(rules, "pods/log") {
		t.Errorf("the role keeps what isn't needed: %v", rules)
	}
	if _, err := f.Cluster("w1").Client().RbacV1().Roles(v1alpha1.SystemNamespace).Get(f.Context(), role.Name, metav1.GetOptions{}); err != nil {
		t.Errorf("the fence's Role: %v", err)
	}
	f.WorkerUntil("w1", func(w *v1alpha1.WorkerCluster) bool {
		return w.Spec.JobController == v1alpha1.JobControllerEmbedded && len(w.Spec.Carry) == 0 && ferrytest.Ready(w)
	})

	f.ok("unregister", "w1", "--worker-context", "w1", "--yes")
	f.WorkerGone("w1")
	f.nothingLeft("w1")
}

// What can't work is refused before anything is changed.
func TestRegisterRefused(t *testing.T) {
	f := terminalFor(t)
	f.RunManager()
	f.fails(1, []string{"leads to the hub itself"}, "register", "self", "--worker-context", "hub", "-A")
	f.fails(2, []string{"no context \"nowhere\""}, "register", "w1", "--worker-context", "nowhere")
	f.fails(2, []string{"--worker-context"}, "register", "w1")
	f.fails(2, []string{"--namespaces", "--all-namespaces"}, "register", "w1", "--worker-context", "w1")
	f.fails(2, []string{"exclude each other"}, "register", "w1", "--worker-context", "w1", "-A", "--namespaces", "a")
	f.fails(2, []string{"kube-system", "system"}, "register", "w1", "--worker-context", "w1", "--namespaces", "a,kube-system")
	f.fails(2, []string{"jobferry-system"}, "register", "w1", "--worker-context", "w1", "--namespaces", "jobferry-system")
	f.fails(2, []string{"--carry Pod", "ConfigMap, Secret, Service, ServiceAccount"}, "register", "w1", "--worker-context", "w1", "--carry", "Pod")
	f.register("w1")
	f.fails(1, []string{"already registered as w1"}, "register", "other", "--worker-context", "w1", "-A")
	f.fails(1, []string{"w1 is another cluster"}, "register", "w1", "--worker-context", "w2")
	f.fails(1, []string{"leads to another cluster than w1: nothing was changed"}, "unregister", "w1", "--worker-context", "w2", "--yes")
	f.fails(1, []string{"Remove w1?", "--yes"}, "unregister", "w1")
	f.WorkerUntil("w1", ferrytest.Ready)

	// An address that the manager can't reach: it's said what is wrong, and the exit code is that
	// of a wait.
	f.fails(3, []string{"Unreachable", "--server"}, "register", "w2", "--worker-context", "w2", "-A", "--server", "https://127.0.0.1:9", "--timeout", "15s")
	f.letGoAfter("w2")
}

func (f terminal) clusterRole(worker string) *rbacv1.ClusterRole {
	f.t.Helper()
	list, err := f.Cluster(worker).Client().RbacV1().ClusterRoles().List(f.Context(), ours())
	f.check(err)
	if len(list.Items) != 1 {
		f.t.Fatalf("%d ClusterRoles", len(list.Items))
	}
	return &list.Items[0]
}

func ours() metav1.ListOptions { return metav1.ListOptions{LabelSelector: v1alpha1.LabelHub} }

func sameRules(a, b []rbacv1.PolicyRule) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].String() != b[i].String() {
			return false
		}
	}
	return true
}

func allows(rules []rbacv1.PolicyRule, resource string) bool {
	for _, r := range rules {
		for _, allowed := range r.Resources {
			if allowed == resource {
				return true
			}
		}
	}
	return false
}

// nothingLeft checks that a worker has nothing of the hub's but the namespace.
func (f terminal) nothingLeft(worker string) {
	f.t.Helper()
	c, ctx := f.Cluster(worker).Client(), f.Context()
	counts := map[string]int{}
	secrets, err := c.CoreV1().Secrets(v1alpha1.SystemNamespace).List(ctx, ours())
	f.check(err)
	counts["Secrets"] = len(secrets.Items)
	accounts, err := c.CoreV1().ServiceAccounts(v1alpha1.SystemNamespace).List(ctx, ours())
	f.check(err)
	counts["ServiceAccounts"] = len(accounts.Items)
	roles, err := c.RbacV1().ClusterRoles().List(ctx, ours())
	f.check(err)
	counts["ClusterRoles"] = len(roles.Items)
	bindings, err := c.RbacV1().ClusterRoleBindings().List(ctx, ours())
	f.check(err)
	counts["ClusterRoleBindings"] = len(bindings.Items)
	local, err := c.RbacV1().Roles(v1alpha1.SystemNamespace).List(ctx, ours())
	f.check(err)
	counts["Roles"] = len(local.Items)
	for kind, n := range counts {
		if n != 0 {
			f.t.Errorf("worker %s still has %d %s", worker, n, kind)
		}
	}
}

// secretOn is a Secret on the hub or in a worker; nil: there is none.
func (f terminal) secretOn(cluster, namespace, name string) *corev1.Secret {
	f.t.Helper()
	secret, err := f.Cluster(cluster).Client().CoreV1().Secrets(namespace).Get(f.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	f.check(err)
	return secret
}
