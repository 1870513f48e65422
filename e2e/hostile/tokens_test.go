package hostile_test

import (
	"context"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager"
	"github.com/jobferry/jobferry/pkg/util/boundtoken"
)

// The token of a worker is renewed while a Job runs there, and nobody rotates it.
func TestTokenIsRenewed(t *testing.T) {
	r := registrantFor(t)
	r.RunManager(soonRenewed)
	r.register("w2", "--namespaces", r.NS, "--token-duration", "10m")
	r.Submit("job", ferrytest.OnWorker("w2"), rigtest.RunForever(), rigtest.Parallel(2))
	r.HubJobUntil("job", rigtest.Running(2))
	first := boundtoken.Of(r.stolenKubeconfig("w2"))
	for range 2 {
		before := boundtoken.Of(r.stolenKubeconfig("w2"))
		r.Until(rig.Object(r.Hub.Client().CoreV1().RESTClient(), "secrets", ferrytest.SystemNamespace, "w2"), func(o runtime.Object) bool {
			s, ok := o.(*corev1.Secret)
			return ok && boundtoken.Of(s.Data[v1alpha1.KubeconfigKey]) != before
		})
	}
	now := boundtoken.Of(r.stolenKubeconfig("w2"))
	old, _ := boundtoken.Parse(first)
	token, ok := boundtoken.Parse(now)
	if !ok || now == first || !token.Expires.After(old.Expires) || token.AccountUID != old.AccountUID {
		t.Errorf("%+v after %+v", token, old)
	}
	r.WorkerUntil("w2", func(w *v1alpha1.WorkerCluster) bool {
		return ferrytest.Ready(w) && meta.IsStatusConditionTrue(w.Status.Conditions, v1alpha1.ConditionTokenRenewed)
	})
	r.Patch("job", `{"spec":{"parallelism":1}}`)
	r.HubJobUntil("job", rigtest.Running(1))
	r.Delete("job", metav1.DeletePropagationBackground)
	r.HubJobGone("job")
}

// soonRenewed has tokens renewed every few seconds: the API server issues none for less than ten
// minutes.
func soonRenewed(o *manager.Options) {
	soonGone(o)
	o.Tokens.Fraction = 0.005
}

// soonGone has a worker removed soon though it may keep mirrors of other tests, which a
// registration with few namespaces doesn't reach.
func soonGone(o *manager.Options) { o.Connection.OrphanGrace = 3 * time.Second }

// Somebody with a stolen token has got himself more of them, which nobody knows of. After a
// rotation none of them is worth anything. Until then, he gets tokens of no other account.
func TestRotationEndsAllTokensOfAThief(t *testing.T) {
	r := registrantFor(t)
	r.RunManager()
	r.register("w1", "--namespaces", r.NS)
	stolen, ctx := r.thief("w1"), r.Context()
	first, ok := boundtoken.Parse(boundtoken.Of(r.stolenKubeconfig("w1")))
	if !ok || first.Lifetime() > 30*24*time.Hour || first.Lifetime() < time.Hour {
		t.Fatalf("by default, the token is %+v", first)
	}
	request := func(namespace, account string) (string, error) {
		answer, err := stolen.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{
			Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](100 * 24 * 3600)},
		}, metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		return answer.Status.Token, nil
	}
	forbidden(t, map[string]func() error{
		"of an account of the system":   func() error { _, err := request("kube-system", "default"); return err },
		"of another account beside it":  func() error { _, err := request(v1alpha1.SystemNamespace, "default"); return err },
		"of one in the Jobs' namespace": func() error { _, err := request(r.NS, "default"); return err },
		"of a new account": func() error {
			_, err := stolen.CoreV1().ServiceAccounts(v1alpha1.SystemNamespace).Create(ctx,
				&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "thief"}}, metav1.CreateOptions{})
			return err
		},
	})
	another, err := request(first.Account.Namespace, first.Account.Name)
	r.ok(err)
	hidden := r.withToken("w1", another)
	if _, err := hidden.BatchV1().Jobs(r.NS).List(ctx, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}

	r.jobferry(ctx, "rotate", "w1", "--worker-context", "w1")
	r.WorkerUntil("w1", ferrytest.Ready)
	for name, c := range map[string]kubernetes.Interface{"stolen": stolen, "made with it": hidden} {
		r.untilUnauthorized(name, c)
	}
	r.Submit("pi", ferrytest.OnWorker("w1"))
	r.HubJobUntil("pi", rigtest.Complete)
}

// withToken is a client of a worker with nothing but a token.
func (r registrant) withToken(worker, token string) kubernetes.Interface {
	r.t.Helper()
	config := rest.AnonymousClientConfig(r.Cluster(worker).RESTConfig())
	config.BearerToken = token
	c, err := kubernetes.NewForConfig(config)
	r.ok(err)
	return c
}

// untilUnauthorized waits until the API server no longer knows a token: it remembers for 10 s that
// it did.
func (r registrant) untilUnauthorized(name string, c kubernetes.Interface) {
	r.t.Helper()
	err := wait.PollUntilContextTimeout(r.Context(), 200*time.Millisecond, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := c.BatchV1().Jobs(r.NS).List(ctx, metav1.ListOptions{})
		return apierrors.IsUnauthorized(err), nil
	})
	if err != nil {
		r.t.Errorf("the token %s: %v", name, err)
	}
}
