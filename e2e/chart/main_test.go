package chart_test

import (
	"flag"
	"testing"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

var update = flag.Bool("update", false, "write golden files and the tables of the docs anew")

func TestMain(m *testing.M) {
	rigtest.Main(m,
		rig.Options{Name: "hub", Audit: true, PriorityAndFairness: true},
		rig.Options{Name: "w1", Nodes: []rig.Nodes{{Count: 2}}},
		rig.Options{Name: "bare", Audit: true, PriorityAndFairness: true, JobController: rig.None, Nodes: []rig.Nodes{{Count: 2}}},
	)
}
