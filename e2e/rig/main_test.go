package rig_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// victim tells the test binary to start a cluster, to say where, and to wait for its end.
const victim = "JOBFERRY_RIG_TEST_VICTIM"

func TestMain(m *testing.M) {
	if os.Getenv(victim) != "" {
		beVictim()
	}
	rigtest.Main(m,
		rig.Options{
			Name:       "main",
			Nodes:      []rig.Nodes{{Count: 2, CPU: "8", Extended: map[string]string{"example.org/gpu": "4"}}, {Prefix: "spot", Labels: map[string]string{"pool": "spot"}}},
			FaultProxy: true,
			Audit:      true,
		},
		rig.Options{Name: "bare", JobController: rig.None},
	)
}

// beVictim prints the cluster's kubeconfig and its processes' ids, and never returns.
func beVictim() {
	c, err := rig.Start(context.Background(), rig.Options{Name: "victim"})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for _, component := range c.Components() {
		fmt.Println("pid", component.PID())
	}
	fmt.Println("file", c.Kubeconfig())
	fmt.Println("ready")
	select {}
}
