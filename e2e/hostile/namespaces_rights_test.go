package hostile_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// A worker is registered for one namespace. Jobs of it run there; somebody with the worker's
// kubeconfig can't run anything in another namespace, nor read a Secret or enter a Pod there.
func TestThiefStaysInTheNamespacesOfTheRegistration(t *testing.T) {
	r := registrantFor(t)
	r.RunManager()
	r.register("w1", "--namespaces", r.NS, "--carry", "Secret")
	r.Submit("pi", ferrytest.OnWorker("w1"))
	r.HubJobUntil("pi", rigtest.Complete)

	admin, stolen, ctx := r.Cluster("w1").Client(), r.thief("w1"), r.Context()
	for _, elsewhere := range []string{"default", "kube-system", "jobferry-system"} {
		r.stays(t, admin, stolen, elsewhere)
	}
	forbidden(t, map[string]func() error{
		"create a namespace": func() error {
			_, err := stolen.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "thief"}}, metav1.CreateOptions{})
			return err
		},
		"list Secrets": func() error {
			_, err := stolen.CoreV1().Secrets(r.NS).List(ctx, metav1.ListOptions{})
			return err
		},
		"give itself more": func() error {
			_, err := stolen.RbacV1().RoleBindings(r.NS).List(ctx, metav1.ListOptions{})
			return err
		},
	})
	if err := stolen.BatchV1().Jobs(r.NS).Delete(ctx, "nothing", metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("in the registration's own namespace: %v", err)
	}

	// Registered for another namespace, it loses this one.
	r.jobferry(ctx, "register", "w1", "--worker-context", "w1", "--namespaces", "team-other")
	t.Cleanup(func() {
		r.ok(admin.CoreV1().Namespaces().Delete(context.Background(), "team-other", metav1.DeleteOptions{}))
	})
	r.untilForbidden(func() error { return stolen.BatchV1().Jobs(r.NS).Delete(ctx, "nothing", metav1.DeleteOptions{}) })
}

// stays holds that the thief can do nothing in a namespace that has a Secret and a Job.
func (r registrant) stays(t *testing.T, admin, stolen kubernetes.Interface, elsewhere string) {
	t.Helper()
	ctx := r.Context()
	_, err := admin.CoreV1().Secrets(elsewhere).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "treasure"}}, metav1.CreateOptions{})
	r.ok(err)
	t.Cleanup(func() {
		r.ok(admin.CoreV1().Secrets(elsewhere).Delete(context.Background(), "treasure", metav1.DeleteOptions{}))
	})
	victim := rigtest.Job(elsewhere, "victim", rigtest.RunForever())
	_, err = admin.BatchV1().Jobs(elsewhere).Create(ctx, victim, metav1.CreateOptions{})
	r.ok(err)
	t.Cleanup(func() {
		background := metav1.DeletePropagationBackground
		r.ok(admin.BatchV1().Jobs(elsewhere).Delete(context.Background(), "victim", metav1.DeleteOptions{PropagationPolicy: &background}))
	})
	forbidden(t, map[string]func() error{
		"create a Job in " + elsewhere: func() error {
			_, err := stolen.BatchV1().Jobs(elsewhere).Create(ctx, rigtest.Job(elsewhere, "thief"), metav1.CreateOptions{})
			return err
		},
		"change a Job in " + elsewhere: func() error {
			_, err := stolen.BatchV1().Jobs(elsewhere).Patch(ctx, "victim", types.MergePatchType, []byte(`{"spec":{"suspend":true}}`), metav1.PatchOptions{})
			return err
		},
		"delete a Job in " + elsewhere: func() error {
			return stolen.BatchV1().Jobs(elsewhere).Delete(ctx, "victim", metav1.DeleteOptions{})
		},
		"forge a status in " + elsewhere: func() error {
			_, err := stolen.BatchV1().Jobs(elsewhere).Patch(ctx, "victim", types.MergePatchType, []byte(`{"status":{"active":7}}`), metav1.PatchOptions{}, "status")
			return err
		},
		"read a Secret in " + elsewhere: func() error {
			_, err := stolen.CoreV1().Secrets(elsewhere).Get(ctx, "treasure", metav1.GetOptions{})
			return err
		},
		"create a Secret in " + elsewhere: func() error {
			_, err := stolen.CoreV1().Secrets(elsewhere).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "thief"}}, metav1.CreateOptions{})
			return err
		},
		"read logs in " + elsewhere: func() error {
			_, err := stolen.CoreV1().Pods(elsewhere).GetLogs("victim", &corev1.PodLogOptions{}).DoRaw(ctx)
			return err
		},
		"enter a Pod in " + elsewhere: func() error {
			return stolen.CoreV1().RESTClient().Post().Namespace(elsewhere).Resource("pods").Name("victim").SubResource("exec").Do(ctx).Error()
		},
		"create a Pod in " + elsewhere: func() error {
			_, err := stolen.CoreV1().Pods(elsewhere).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "thief"}}, metav1.CreateOptions{})
			return err
		},
	})
}
