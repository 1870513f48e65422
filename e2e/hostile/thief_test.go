package hostile_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/product"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// registrant is an admin of the hub and its workers, with the plugin.
type registrant struct {
	*ferrytest.Ferry
	t          *testing.T
	kubeconfig string
}

func registrantFor(t *testing.T) registrant {
	t.Helper()
	r := registrant{Ferry: ferrytest.For(t), t: t, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	all := clientcmdapi.NewConfig()
	for _, name := range []string{ferrytest.HubName, "w1", "w2", hostile} {
		one, err := clientcmd.Load(r.Cluster(name).KubeconfigBytes())
		r.ok(err)
		current := one.Contexts[one.CurrentContext]
		all.Clusters[name], all.AuthInfos[name] = one.Clusters[current.Cluster], one.AuthInfos[current.AuthInfo]
		all.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	all.CurrentContext = ferrytest.HubName
	r.ok(clientcmd.WriteToFile(*all, r.kubeconfig))
	return r
}

func (r registrant) ok(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// jobferry runs the plugin, and returns what it prints.
func (r registrant) jobferry(ctx context.Context, args ...string) string {
	r.t.Helper()
	program, err := product.Program("kubectl-jobferry")
	r.ok(err)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+r.kubeconfig)
	out, err := cmd.CombinedOutput()
	r.t.Logf("$ kubectl jobferry %s\n%s", strings.Join(args, " "), out)
	r.ok(err)
	return string(out)
}

// register makes a cluster a worker, until the test ends. A manager must run.
func (r registrant) register(name string, more ...string) {
	r.t.Helper()
	r.jobferry(r.Context(), slices.Concat([]string{"register", name, "--worker-context", name, "--labels", "name=" + name}, more)...)
	r.t.Cleanup(func() {
		r.jobferry(context.Background(), "unregister", name, "--worker-context", name, "--policy", "Orphan", "--yes", "--timeout", "100s")
	})
	r.WorkerUntil(name, ferrytest.Ready)
	r.LeaveWorker(name)
}

// stolenKubeconfig is a worker's kubeconfig, as it's on the hub.
func (r registrant) stolenKubeconfig(worker string) []byte {
	r.t.Helper()
	secret, err := r.Hub.Client().CoreV1().Secrets(ferrytest.SystemNamespace).Get(r.Context(), worker, metav1.GetOptions{})
	r.ok(err)
	return secret.Data[v1alpha1.KubeconfigKey]
}

// thief is somebody with the hub's credentials for a worker.
func (r registrant) thief(worker string) kubernetes.Interface {
	r.t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(r.stolenKubeconfig(worker))
	r.ok(err)
	c, err := kubernetes.NewForConfig(config)
	r.ok(err)
	return c
}

// forbidden checks that the API server refuses each of these for lack of rights.
func forbidden(t *testing.T, tries map[string]func() error) {
	t.Helper()
	for what, try := range tries {
		if err := try(); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// untilForbidden waits for the API server's authorizer, which follows the roles.
func (r registrant) untilForbidden(try func() error) {
	r.t.Helper()
	r.ok(wait.PollUntilContextCancel(r.Context(), 50*time.Millisecond, true, func(context.Context) (bool, error) {
		return apierrors.IsForbidden(try()), nil
	}))
}
