package handsoff_test

import (
	"testing"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

func TestMain(m *testing.M) {
	rigtest.Main(m,
		rig.Options{Name: ferrytest.HubName, Release: binaries.Hub(binaries.Current)},
		rig.Options{Name: "w1", Release: binaries.Worker(binaries.Current), Nodes: []rig.Nodes{{Count: 2}}},
		rig.Options{Name: "w2", Release: binaries.Worker(binaries.Current), Nodes: []rig.Nodes{{Count: 1}}},
		rig.Options{Name: "clocks", Release: binaries.Worker(binaries.Current), Nodes: []rig.Nodes{{Count: 1}}},
	)
}
