package upgrade_test

import (
	"flag"
	"testing"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

var (
	rounds = flag.Int("rounds", 1, "how often this release is rolled back and upgraded to again")
	copies = flag.Int("copies", 1, "how many Jobs there are of each kind in each worker")
)

const (
	hubName = "hub"
	// builtIn and embedded are the workers, by their Job controllers.
	builtIn  = "w1"
	embedded = "w2"
)

func TestMain(m *testing.M) {
	nodes := []rig.Nodes{{Count: 2, Pods: 1000}}
	rigtest.Main(m,
		rig.Options{Name: hubName, Release: kubernetesBefore},
		rig.Options{Name: builtIn, Release: kubernetesBefore, Nodes: nodes},
		rig.Options{Name: embedded, Release: kubernetesBefore, Nodes: nodes, JobController: rig.None},
	)
}
