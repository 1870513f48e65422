package plugin

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/boundtoken"
)

// A token is exchanged while a Job runs; the old one is revoked, and only when the hub uses the new
// one.
func TestRotate(t *testing.T) {
	f := terminalFor(t)
	m := f.RunManager()
	f.register("w1", "--token-duration", "0")
	f.Submit("job", ferrytest.OnWorker("w1"), rigtest.RunForever(), rigtest.Parallel(2))
	f.HubJobUntil("job", rigtest.Running(2))
	first := f.tokenInUse("w1")

	o := f.ok("rotate", "w1", "--worker-context", "w1")
	f.says(o.err, "Secret "+first+" removed", "ServiceAccount "+first+" removed")
	second := f.tokenInUse("w1")
	if second == first || f.secretOn("w1", v1alpha1.SystemNamespace, first) != nil {
		t.Errorf("%s after %s", second, first)
	}
	f.Patch("job", `{"spec":{"parallelism":1}}`)
	f.HubJobUntil("job", rigtest.Running(1))

	// To a token that expires, and back; register leaves the kind of token as it is.
	f.ok("rotate", "w1", "--worker-context", "w1", "--token-duration", "24h")
	if token, ok := boundtoken.Parse(f.tokenOnHub("w1")); !ok || token.Lifetime() != 24*time.Hour {
		t.Errorf("%+v", token)
	}
	f.fails(2, []string{"kubectl jobferry rotate w1 --token-duration 48h"}, "register", "w1", "--worker-context", "w1", "--token-duration", "48h")
	f.ok("register", "w1", "--worker-context", "w1")
	f.ok("rotate", "w1", "--worker-context", "w1", "--token-duration", "0")
	if token, ok := boundtoken.Parse(f.tokenOnHub("w1")); ok {
		t.Errorf("a token that expires: %+v", token)
	}

	// Nobody uses the new token: the old one stays.
	m.Stop()
	old := f.tokenInUse("w1")
	f.fails(3, []string{"nobody has used it yet", "wasn't revoked"}, "rotate", "w1", "--worker-context", "w1", "--timeout", "5s")
	if f.secretOn("w1", v1alpha1.SystemNamespace, old) == nil {
		t.Error("the old token was revoked")
	}
	f.RunManager()
	f.letGoAfter("w1")
	f.ok("rotate", "w1", "--worker-context", "w1")
	if left := f.tokensIn("w1"); left != 1 {
		t.Errorf("%d tokens are left", left)
	}
	f.Patch("job", `{"spec":{"parallelism":2}}`)
	f.HubJobUntil("job", rigtest.Running(2))
	f.Delete("job", metav1.DeletePropagationBackground)
	f.HubJobGone("job")
}

func (f terminal) tokenInUse(worker string) string {
	f.t.Helper()
	return f.secretOn("hub", ferrytest.SystemNamespace, worker).Annotations[v1alpha1.AnnotationAccount]
}

func (f terminal) tokensIn(worker string) int {
	f.t.Helper()
	list, err := f.Cluster(worker).Client().CoreV1().Secrets(v1alpha1.SystemNamespace).List(f.Context(), ours())
	f.check(err)
	return len(list.Items)
}

func (f terminal) tokenOnHub(worker string) string {
	f.t.Helper()
	return boundtoken.Of(f.secretOn("hub", ferrytest.SystemNamespace, worker).Data[v1alpha1.KubeconfigKey])
}
