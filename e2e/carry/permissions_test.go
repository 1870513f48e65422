package carry_test

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// documented is what the manager needs in a worker that ConfigMaps are carried to. Secrets and
// PersistentVolumeClaims are left out.
var documented = []rbacv1.PolicyRule{
	{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "create"}},
	{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
	{APIGroups: []string{"batch"}, Resources: []string{"jobs/status"}, Verbs: []string{"patch"}},
	{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"list"}},
	{APIGroups: []string{""}, Resources: []string{"nodes", "pods"}, Verbs: []string{"list", "watch"}},
	{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "update", "patch", "delete"}},
}

// The documented permissions are enough, and an event names what they don't allow.
func TestPermissions(t *testing.T) {
	f := ferryFor(t)
	f.RunManager()
	f.allow()
	f.Unregister("w2")
	f.WorkerGone("w2") // a cluster has one name
	f.SecretGone("w2")
	f.RegisterSecret("limited", map[string][]byte{v1alpha1.KubeconfigKey: f.limited("w2", documented)}, nil)
	f.WorkerUntil("limited", ferrytest.Ready)
	f.set("limited", carryAll)
	toLimited := ferrytest.OnWorker("limited")

	f.configMap(f.Hub, "settings", "a")
	f.Submit("job", rigtest.RunForever(), toLimited, withConfigMap("settings", false))
	f.MirrorUntil("w2", "job", rigtest.Running(1))
	f.change(f.Hub, "settings", "b")
	f.configMapUntil("w2", "settings", configMapIs("b"))
	f.Submit("sharing", toLimited, withConfigMap("settings", false))
	f.HubJobUntil("sharing", rigtest.Complete)

	f.Submit("claiming", toLimited, withClaim("data"))
	f.MirrorUntil("w2", "claiming", ferrytest.Exists)

	f.secret(f.Hub, "password", "a")
	f.Submit("secretive", toLimited, withSecret("password"))
	f.EventUntil("secretive", v1alpha1.EventFailedCarry, `Worker limited: refused what the Job needs: secret "password"`)
	if m := f.MirrorUntil("w2", "secretive", ferrytest.Exists); !suspended(m) {
		t.Error("the mirror isn't suspended")
	}

	f.Submit("peers", toLimited, withSubdomain("peers"))
	f.EventUntil("peers", v1alpha1.EventFailedCarry, `Worker limited: refused what the Job needs: service "peers"`)
	if m := f.MirrorUntil("w2", "peers", ferrytest.Exists); !suspended(m) {
		t.Error("the mirror isn't suspended: its Pods would not find each other")
	}
	f.set("limited", `{"carry":["ConfigMap","Secret"]}`)
	f.Submit("unseen", toLimited, withSubdomain("peers"))
	f.EventUntil("unseen", v1alpha1.EventNotCarried, `Worker limited: service "peers" isn't copied, and the hub may not see whether it's there`)

	for _, job := range []string{"job", "claiming", "secretive", "peers", "unseen"} {
		f.Delete(job, metav1.DeletePropagationBackground)
		f.HubJobGone(job)
	}
	f.Unregister("limited")
	f.WorkerGone("limited")
}

// limited makes a kubeconfig of a worker with these permissions in it.
func (f ferry) limited(worker string, rules []rbacv1.PolicyRule) []byte {
	f.t.Helper()
	c := f.Cluster(worker).Client()
	name := metav1.ObjectMeta{Name: f.NS}
	_, err := c.RbacV1().ClusterRoles().Create(f.Context(), &rbacv1.ClusterRole{ObjectMeta: name, Rules: rules}, metav1.CreateOptions{})
	f.check(err)
	_, err = c.CoreV1().ServiceAccounts("default").Create(f.Context(), &corev1.ServiceAccount{ObjectMeta: name}, metav1.CreateOptions{})
	f.check(err)
	_, err = c.RbacV1().ClusterRoleBindings().Create(f.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: f.NS},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: f.NS}},
	}, metav1.CreateOptions{})
	f.check(err)
	token, err := c.CoreV1().ServiceAccounts("default").CreateToken(f.Context(), f.NS, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	f.check(err)
	config, err := clientcmd.Load(f.Cluster(worker).KubeconfigBytes())
	f.check(err)
	for user := range config.AuthInfos {
		config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	content, err := clientcmd.Write(*config)
	f.check(err)
	return content
}
