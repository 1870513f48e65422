package plugin

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager"
	"github.com/jobferry/jobferry/pkg/plugin/registration"
	"github.com/jobferry/jobferry/pkg/util/boundtoken"
)

// How deployers apply what is in Git.
var (
	asFlux = []string{"apply", "--server-side", "--force-conflicts", "--field-manager=kustomize-controller", "-f", "-"}
	asArgo = []string{"apply", "--field-manager=argocd-controller", "-f", "-"}
)

// A worker is registered by what register prints: the WorkerCluster and the worker's objects are
// applied again and again, as deployers do, and the Secret is created once. The manager renews the
// token all the while.
func TestGitOps(t *testing.T) {
	f := terminalFor(t)
	f.RunManager(func(o *manager.Options) { o.Tokens.Fraction = 0.005 })
	worker, cluster, secret := f.inGit("w2")

	f.Kubectl(f.Hub, cluster, asFlux...)
	f.WorkerUntil("w2", ferrytest.NotReady(v1alpha1.ReasonSecretMissing))
	f.Kubectl(f.Cluster("w2"), worker, asFlux...)
	f.Kubectl(f.Hub, secret(f.newToken("w2")), "create", "-f", "-")
	f.letGoAfter("w2")
	f.WorkerUntil("w2", ferrytest.Ready)
	f.LeaveWorker("w2")
	f.untilRenewed("w2")
	for _, deployer := range [][]string{asFlux, asArgo} {
		f.Kubectl(f.Cluster("w2"), worker, deployer...)
		f.Kubectl(f.Hub, cluster, deployer...)
	}
	f.untilRenewed("w2")
	got := f.WorkerUntil("w2", ferrytest.Ready)
	if got.Labels["name"] != "w2" || !registration.SelectsNames(got.Spec.NamespaceSelector) {
		t.Errorf("%+v %+v", got.Labels, got.Spec)
	}
	leases := f.Kubectl(f.Cluster("w2"), "", "get", "leases", "-n", v1alpha1.SystemNamespace, "-l", v1alpha1.LabelHub, "-o", "jsonpath={.items[*].spec.holderIdentity}")
	if strings.TrimSpace(leases) == "" {
		t.Error("the Lease of the hub's writer has lost its holder")
	}
	f.Submit("pi", ferrytest.OnWorker("w2"))
	f.HubJobUntil("pi", rigtest.Complete)
}

// A deployer that applies the Secret again takes a renewed token back, or is refused. Without a
// lifetime, the manager doesn't renew, and uses what a vault's operator writes at once.
func TestWhoOwnsTheToken(t *testing.T) {
	f := terminalFor(t)
	f.RunManager(func(o *manager.Options) { o.Tokens.Fraction = 0.005 })
	worker, cluster, secret := f.inGit("w2")
	f.Kubectl(f.Cluster("w2"), worker, asFlux...)
	f.Kubectl(f.Hub, cluster, asFlux...)
	first := secret(f.newToken("w2"))
	f.Kubectl(f.Hub, first, asFlux...)
	f.letGoAfter("w2")
	f.WorkerUntil("w2", ferrytest.Ready)
	renewed := f.untilRenewed("w2")

	if _, err := f.Hub.Kubectl(f.Context(), first, "apply", "--server-side", "--field-manager=kustomize-controller", "-f", "-"); err == nil || !strings.Contains(err.Error(), ".data.kubeconfig") {
		t.Errorf("without force, the conflict is: %v", err)
	}
	f.Kubectl(f.Hub, first, asFlux...)
	if f.tokenOnHub("w2") == renewed {
		t.Error("with force, the renewed token stays")
	}

	ofVault := func(token string) string {
		return secret(token, func(s *corev1.Secret) { delete(s.Annotations, v1alpha1.AnnotationTokenDuration) })
	}
	f.Kubectl(f.Hub, ofVault(f.newToken("w2")), asFlux...)
	f.WorkerUntil("w2", ferrytest.Ready)
	f.Kubectl(f.Hub, ofVault("bad"), asFlux...)
	f.WorkerUntil("w2", ferrytest.NotReady(v1alpha1.ReasonUnauthorized))
	next := f.newToken("w2")
	f.Kubectl(f.Hub, ofVault(next), asFlux...)
	f.WorkerUntil("w2", ferrytest.Ready)
	if f.tokenOnHub("w2") != next {
		t.Error("the manager has renewed a token that isn't its to renew")
	}
}

// inGit is what register prints for a worker: its objects there, the WorkerCluster, and the Secret
// with a token in its place.
func (f terminal) inGit(name string) (worker, cluster string, secret func(token string, edits ...func(*corev1.Secret)) string) {
	f.t.Helper()
	register := []string{"register", name, "--worker-context", name, "--namespaces", f.NS, "--token-duration", "10m", "--labels", "name=" + name + ",pool=main", "--dry-run", "--manifests"}
	worker = f.ok(append(register, "worker")...).out
	for manifest := range strings.SplitSeq(f.ok(append(register, "hub")...).out, "---\n") {
		switch {
		case strings.Contains(manifest, "kind: WorkerCluster\n"):
			cluster = manifest
		case strings.Contains(manifest, "kind: Secret\n"):
			secret = func(token string, edits ...func(*corev1.Secret)) string { return f.asData(manifest, token, edits) }
		}
	}
	return worker, cluster, secret
}

// asData is a Secret's manifest with a token, and with data in place of stringData, in which the
// API server finds no conflicts.
func (f terminal) asData(manifest, token string, edits []func(*corev1.Secret)) string {
	f.t.Helper()
	var s corev1.Secret
	f.check(yaml.Unmarshal([]byte(strings.ReplaceAll(manifest, registration.TokenPlaceholder, token)), &s))
	s.Data, s.StringData = map[string][]byte{v1alpha1.KubeconfigKey: []byte(s.StringData[v1alpha1.KubeconfigKey])}, nil
	for _, edit := range edits {
		edit(&s)
	}
	text, err := yaml.Marshal(&s)
	f.check(err)
	return string(text)
}

// newToken is one of the hub's account in a worker.
func (f terminal) newToken(worker string) string {
	f.t.Helper()
	account := f.Kubectl(f.Cluster(worker), "", "get", "serviceaccounts", "-n", v1alpha1.SystemNamespace, "-l", v1alpha1.LabelHub, "-o", "jsonpath={.items[0].metadata.name}")
	return strings.TrimSpace(f.Kubectl(f.Cluster(worker), "", "create", "token", account, "-n", v1alpha1.SystemNamespace, "--duration", "10m"))
}

// untilRenewed waits until the hub has another token for a worker, and returns it.
func (f terminal) untilRenewed(worker string) string {
	f.t.Helper()
	before := f.tokenOnHub(worker)
	f.Until(rig.Object(f.Hub.Client().CoreV1().RESTClient(), "secrets", ferrytest.SystemNamespace, worker), func(o runtime.Object) bool {
		s, ok := o.(*corev1.Secret)
		return ok && boundtoken.Of(s.Data[v1alpha1.KubeconfigKey]) != before
	})
	return f.tokenOnHub(worker)
}
