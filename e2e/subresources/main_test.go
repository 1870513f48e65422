package subresources_test

import (
	"testing"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

func TestMain(m *testing.M) {
	rigtest.Main(m,
		rig.Options{Name: ferrytest.HubName},
		rig.Options{Name: "w1", Audit: true, Nodes: []rig.Nodes{{Count: 2}}},
		rig.Options{Name: "w2", FaultProxy: true, Nodes: []rig.Nodes{{Count: 1}}},
	)
}
