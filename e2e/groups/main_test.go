package groups_test

import (
	"testing"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// workers are all alike: nothing but the group tells where a Job goes.
var workers = []string{"w1", "w2", "w3"}

func TestMain(m *testing.M) {
	options := []rig.Options{{Name: ferrytest.HubName, Release: binaries.Hub(binaries.Current)}}
	for _, worker := range workers {
		options = append(options, rig.Options{
			Name: worker, Release: binaries.Worker(binaries.Current), FaultProxy: true, Nodes: []rig.Nodes{{Count: 2}},
		})
	}
	rigtest.Main(m, options...)
}
