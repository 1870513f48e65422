package docs_test

import (
	"testing"
	"time"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

const (
	hub  = "hub"
	west = "west"
	east = "east"
)

func TestMain(m *testing.M) {
	pods := rig.PodDefaults{RunFor: 3 * time.Second}
	rigtest.Main(m,
		rig.Options{Name: hub, Nodes: []rig.Nodes{{Count: 2, CPU: "4"}}},
		rig.Options{Name: west, Nodes: []rig.Nodes{{Count: 2, CPU: "8"}}, Pods: pods},
		rig.Options{Name: east, Nodes: []rig.Nodes{{Count: 2, CPU: "8"}}, Pods: pods, JobController: rig.None},
	)
}
