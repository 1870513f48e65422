package dispatch_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// Extended resources that only one worker has, each for tests of one kind, so that tests in
// parallel don't take each other's room.
const (
	seats  = "example.org/seat"  // of w1: 4
	berths = "example.org/berth" // of w1: 4, for Jobs that wait in order
)

func TestMain(m *testing.M) {
	// Tests wait most of the time: more of them fit than there are CPUs.
	if err := flag.Set("test.parallel", "12"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	rigtest.Main(m,
		rig.Options{Name: ferrytest.HubName, Release: binaries.Hub(binaries.Current), Audit: true},
		rig.Options{
			Name: "w1", Release: binaries.Worker(binaries.Current), Audit: true, Controllers: []string{"resourceclaim-controller", "persistentvolume-binder-controller"},
			Nodes: []rig.Nodes{
				{Count: 2, Extended: map[string]string{seats: "2", berths: "2"}},
				{Prefix: "special", Labels: map[string]string{"tier": "special"}},
			},
		},
		rig.Options{Name: "w2", Release: binaries.Worker(binaries.Current), FaultProxy: true, Nodes: []rig.Nodes{{Count: 2}}, Controllers: []string{"persistentvolume-binder-controller"}},
		// Without a Job controller: the test says how the Jobs there go.
		rig.Options{Name: "puppet", Release: binaries.Worker(binaries.Current), JobController: rig.None, Audit: true},
	)
}
