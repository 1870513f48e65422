// Package worker_test holds jobferry-worker to the Job API, on a real API server, one test per
// promise. The test is the kubelet: see package workertest.
package worker_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/jobferry/jobferry/e2e/product"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/e2e/worker/workertest"
)

const (
	backoff   = "1s" // instead of 10s, so that tests don't take minutes
	batch     = "100ms"
	container = "main"
)

func TestMain(m *testing.M) {
	// The tests wait for the controller most of the time, so more of them fit than there are cores.
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// Without kube-controller-manager's TTL controller, which would delete our Jobs, too.
	controllers := "--controllers=garbage-collector-controller,namespace-controller," +
		"pod-garbage-collector-controller,resourcequota-controller,serviceaccount-controller,root-ca-certificate-publisher-controller"
	clusters := []rig.Options{
		{Name: "worker", JobController: rig.None, Audit: true, ControllerManagerFlags: []string{controllers}},
		{Name: "older", Release: binaries.Worker(binaries.Oldest), JobController: rig.None, ControllerManagerFlags: []string{controllers}},
	}
	if gangRelease >= firstWithGangs {
		clusters = append(clusters, gangCluster())
	}
	rigtest.Main(m, clusters...)
}

// shared runs jobferry-worker for all tests that don't need one of their own. It ends with the test
// binary.
var shared struct {
	once sync.Once
	err  error
}

func startShared(c *rig.Cluster) error {
	shared.once.Do(func() {
		shared.err = func() error {
			program, err := product.Program("jobferry-worker")
			if err != nil {
				return err
			}
			if err := workertest.AddNode(context.Background(), c.Client()); err != nil {
				return err
			}
			log := filepath.Join(filepath.Dir(program), "log")
			_, err = workertest.Start(program, c.Kubeconfig(), log,
				"--pod-failure-backoff="+backoff, "--max-pod-failure-backoff=4s", "--sync-batch-period="+batch)
			return err
		}()
	})
	return shared.err
}
