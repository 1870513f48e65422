package kueue_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

func TestMain(m *testing.M) {
	// Tests wait most of the time: more of them fit than there are CPUs.
	if err := flag.Set("test.parallel", "8"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	rigtest.Main(m,
		rig.Options{Name: ferrytest.HubName},
		rig.Options{Name: otherHub},
		rig.Options{Name: "w1", FaultProxy: true, Nodes: []rig.Nodes{
			{Count: 2, CPU: "16"},
			{Prefix: "spot", CPU: "4", Labels: map[string]string{"capacity": "spot"}, Taints: spotTaint},
		}},
		rig.Options{Name: "w2", FaultProxy: true, Nodes: []rig.Nodes{{Count: 2, CPU: "16"}}},
	)
}
