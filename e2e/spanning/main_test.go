package spanning_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager"
)

const (
	// room is how many Pods of one story fit in each worker.
	room = 4
	// manyStories is more than there are.
	manyStories = 50
	// lostTimeout is long enough for a machine that is busy to probe in between.
	lostTimeout = 10 * time.Second
	// embedded is the worker with the embedded Job controller.
	embedded = "embedded"
	// managerUser is whom the manager is for the hub.
	managerUser = "system:serviceaccount:" + ferrytest.SystemNamespace + ":jobferry-manager"
)

func TestMain(m *testing.M) {
	// Stories wait most of the time: more of them fit than there are CPUs.
	if err := flag.Set("test.parallel", "8"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	nodes := []rig.Nodes{{Count: 2, Extended: map[string]string{}}}
	for i := range manyStories {
		nodes[0].Extended[seat(i)] = fmt.Sprint(room / nodes[0].Count)
	}
	rigtest.Main(m,
		rig.Options{Name: ferrytest.HubName, Release: binaries.Hub(binaries.Current), Audit: true},
		rig.Options{Name: "w1", Release: binaries.Worker(binaries.Current), Nodes: nodes, FaultProxy: true},
		rig.Options{Name: "w2", Nodes: nodes, Release: binaries.Worker(binaries.Oldest)},
		rig.Options{Name: embedded, Release: binaries.Worker(binaries.Current), Nodes: nodes, FaultProxy: true, JobController: rig.None},
	)
}

// seat is a resource that only the Pods of one story ask for: what else runs takes no room from it.
func seat(story int) string { return fmt.Sprintf("example.org/seat-%d", story) }

// open runs the manager, with the rights that config/ gives it, under the policies that confine it,
// and registers the workers. The API of w2 is reached through a liar, which says the truth unless
// it is told otherwise.
func open(t *testing.T, workers ...string) *ferrytest.Ferry {
	f := ferrytest.For(t)
	for _, file := range []string{"role.yaml", "bindings.yaml"} {
		f.Kubectl(f.Hub, "", "apply", "--server-side", "-f", checkout.Path("config", "rbac", file))
	}
	f.Kubectl(f.Hub, "", "apply", "--server-side", "-k", checkout.Path("config", "admission", "checks"))
	f.ManagerUser = managerUser
	f.RunManager(settings)
	kubeconfig, err := f.Liar("w2").Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	for _, worker := range workers {
		if worker == "w2" {
			f.RegisterSecret(worker, map[string][]byte{v1alpha1.KubeconfigKey: kubeconfig}, nil)
		}
	}
	f.Register(workers...)
	return f
}

func settings(o *manager.Options) {
	o.Connection.WorkerLostTimeout = lostTimeout
	o.Fence.Duration = lease
	o.Connection.ProbeInterval, o.Connection.ProbeTimeout = 500*time.Millisecond, 3*time.Second
	o.Connection.RetryDelay, o.Connection.MaxBackoff = 200*time.Millisecond, time.Second
}
