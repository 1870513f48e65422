package pods_test

import (
	"testing"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// The hub takes a Node without a heartbeat for lost after 25 seconds, and has at most 20 Pods that
// have ended. Strict verifies the certificates of kubelets.
func TestMain(m *testing.M) {
	rigtest.Main(m,
		rig.Options{Name: ferrytest.HubName, Release: binaries.Hub(binaries.Current), Audit: true, ControllerManagerFlags: []string{
			"--controllers=*", "--node-monitor-period=1s", "--node-monitor-grace-period=25s", "--node-startup-grace-period=25s", "--terminated-pod-gc-threshold=20",
		}},
		rig.Options{Name: "strict", Release: binaries.Hub(binaries.Current), SignedKubelets: true},
		rig.Options{Name: "w1", Release: binaries.Worker(binaries.Current), Audit: true, Nodes: []rig.Nodes{{Count: 2}}},
		rig.Options{Name: "w2", Release: binaries.Worker(binaries.Current), Nodes: []rig.Nodes{{Count: 1}}},
	)
}
