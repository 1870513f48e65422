package dashboard

import (
	"flag"
	"testing"
	"time"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

var (
	pictures    = flag.String("pictures", "", "write the pictures of docs/how-to/dashboard.md to this folder")
	jobs        = flag.Int("jobs", 300, "how many Jobs TestManyJobs has")
	slowest     = flag.Duration("slowest", time.Minute, "how long a page of TestManyJobs may take; other tests may share the machine")
	slowestSort = flag.Duration("slowest-sort", time.Minute, "how long sorting its list may take")
	indexes     = flag.Int("indexes", 100_000, "how many indexes its largest Job has")
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Background())
	rigtest.Main(m,
		rig.Options{Name: ferrytest.HubName, FaultProxy: true},
		rig.Options{Name: "west", FaultProxy: true, Nodes: []rig.Nodes{{Count: 3, CPU: "8", Memory: "32Gi", Extended: map[string]string{"nvidia.com/gpu": "4"}}}},
		rig.Options{Name: "east", FaultProxy: true, Nodes: []rig.Nodes{{Count: 2, CPU: "16", Memory: "64Gi"}}},
	)
}
