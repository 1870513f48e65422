package hostile_test

import (
	"testing"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// hostile is the worker of the adversary.
const hostile = "hostile"

func TestMain(m *testing.M) {
	rigtest.Main(m,
		// Else quotas are counted anew every 5 minutes, from a cache that may lack the last few Jobs.
		rig.Options{
			Name: ferrytest.HubName, Audit: true, Controllers: []string{"resourcequota-controller"},
			ControllerManagerFlags: []string{"--resource-quota-sync-period=1h"},
		},
		rig.Options{Name: "w1", FaultProxy: true, Nodes: []rig.Nodes{{Count: 2}}},
		rig.Options{Name: "w2", FaultProxy: true, Nodes: []rig.Nodes{{Count: 2}}},
		rig.Options{Name: hostile, FaultProxy: true, Audit: true, Nodes: []rig.Nodes{{Count: 2}}},
	)
}
