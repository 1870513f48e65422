package subresources_test

import (
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/workeraccess"
)

// The rights of the hub's credentials in the worker decide what can be shown. A missing one is
// never shown as a missing right of the user. A rotated kubeconfig has effect at once.
func TestWorkerPermissions(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager()
	f.Register("w1")
	serve(f, t)
	f.Submit("job", ferrytest.OnWorker("w1"), rigtest.RunForever())
	f.LeaveWorker("w1")
	f.HubJobUntil("job", rigtest.Running(1))
	u := reader(f, t).grant(f, f.NS, "get: jobs/log, jobs/pods, jobs/events, jobs/mirror", "get, create: jobs/exec, jobs/attach, jobs/portforward")
	ctx := f.Context()
	defer f.ReplaceSecret("w1", f.Cluster("w1").KubeconfigBytes()) // for other tests

	without := workeraccess.Everything()
	without.Logs, without.Exec = false, false
	limit(f, t, "without", without)
	refuses := `worker "w1" refuses this to the hub`
	u.refused(ctx, http.StatusServiceUnavailable, refuses, f.NS, "job", "log")
	u.must(ctx, f.NS, "job", "mirror")
	u.must(ctx, f.NS, "job", "pods") // the manager counts the worker's Pods, and so may list them

	logs := without
	logs.Logs = true
	limit(f, t, "logs", logs)
	u.must(ctx, f.NS, "job", "pods")
	u.must(ctx, f.NS, "job", "log")
	u.must(ctx, f.NS, "job", "events")
	u.cut(u.exec(ctx, nil, nil, f.NS, "job", "command=true"), refuses)
	u.cut(u.streams(ctx, "WebSocket", "attach", nil, nil, f.NS, "job"), refuses)
	_, err := u.forward(f.NS, "job", "WebSocket")
	u.cut(err, refuses)

	limit(f, t, "all", workeraccess.Everything())
	u.check(u.exec(ctx, nil, nil, f.NS, "job", "command=true"))
	u.check(u.streams(ctx, "WebSocket", "attach", nil, nil, f.NS, "job"))
	conn, err := u.forward(f.NS, "job", "WebSocket")
	u.check(err)
	conn.Close()
}

// limit exchanges the kubeconfig of w1 for one of a ServiceAccount with these permissions.
func limit(f *ferrytest.Ferry, t *testing.T, name string, settings workeraccess.Settings) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	w, ctx := f.Cluster("w1"), f.Context()
	name = fmt.Sprintf("hub-%s-%s", f.NS, name)
	_, err := w.Client().CoreV1().ServiceAccounts("default").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	check(err)
	_, err = w.Client().RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: workeraccess.ClusterRules(workeraccess.For(settings)),
	}, metav1.CreateOptions{})
	check(err)
	_, err = w.Client().RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: name}},
	}, metav1.CreateOptions{})
	check(err)
	kubeconfig, err := w.ServiceAccountKubeconfig(ctx, "default", name)
	check(err)
	f.ReplaceSecret("w1", kubeconfig)
	f.WorkerUntil("w1", ferrytest.Ready)
}
