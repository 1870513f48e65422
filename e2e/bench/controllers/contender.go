package controllers

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/jobferry/jobferry/e2e/product"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/process"
	"github.com/jobferry/jobferry/e2e/worker/workertest"
)

// contender is a Job controller under test.
type contender struct {
	name   string
	launch func(ctx context.Context, dir string, c *rig.Cluster, workers int) (*process.Process, error)
}

const limits = "--kube-api-qps=2000 --kube-api-burst=4000"

var contenders = []contender{
	{"built-in", func(ctx context.Context, dir string, c *rig.Cluster, workers int) (*process.Process, error) {
		cmd, err := workertest.BuiltIn(ctx, c, append(strings.Fields(limits), fmt.Sprintf("--concurrent-job-syncs=%d", workers))...)
		if err != nil {
			return nil, err
		}
		return process.Start(cmd, filepath.Join(dir, "built-in.log"))
	}},
	{"embedded", func(ctx context.Context, dir string, c *rig.Cluster, workers int) (*process.Process, error) {
		program, err := product.Build(ctx, dir, "jobferry-worker")
		if err != nil {
			return nil, err
		}
		args := append(strings.Fields(limits), "--drop-in", "--ttl=false", fmt.Sprintf("--concurrent-job-syncs=%d", workers))
		return process.Start(workertest.Command(program, c.Kubeconfig(), args...), filepath.Join(dir, "embedded.log"))
	}},
}
