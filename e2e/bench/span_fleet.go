package bench

import (
	"context"
	"errors"
	"time"

	"github.com/jobferry/jobferry/e2e/product"
	"github.com/jobferry/jobferry/e2e/rig"
)

const (
	workerProgram = "jobferry-worker"
	// spanNodes is the number of nodes that the room of a worker is on.
	spanNodes = 5
)

// embeddedCluster is a cluster for the embedded Job controller, with room for so many Pods.
func embeddedCluster(o SpanOptions, name string, room int) rig.Options {
	return rig.Options{
		Name: name, Audit: true, FaultProxy: true, JobController: rig.None,
		Nodes: []rig.Nodes{{Count: spanNodes, CPU: "4k", Memory: "4Ti", Pods: divideUp(room, spanNodes)}},
		Pods:  rig.PodDefaults{RunFor: o.RunFor},
	}
}

// startEmbedded starts clusters with the embedded Job controller, and a hub or none.
func startEmbedded(ctx context.Context, program string, o SpanOptions, hub []rig.Options, workers ...rig.Options) (*fleet, error) {
	f, err := newFleet(ctx, hub, workers...)
	if err != nil {
		return nil, err
	}
	for _, s := range f.workers {
		s.embedded = true
		controller := s.AddProgram(workerProgram, program, "--kubeconfig="+s.Kubeconfig(), "--leader-elect=false",
			"--metrics-bind-address=0", "--health-probe-bind-address=0", "--kube-api-qps=2000", "--kube-api-burst=4000",
			"--fence-after="+(o.LostAfter/3).String())
		if err := controller.Start(); err != nil {
			return nil, errors.Join(err, f.stop())
		}
	}
	return f, nil
}

// managerFlags let the manager notice in time that a worker is lost: its Lease and the fence are
// over well before.
func (o *SpanOptions) managerFlags() []string {
	lease := max(o.LostAfter/5, time.Second).Truncate(time.Second)
	return append([]string{
		"--worker-lost-timeout=" + o.LostAfter.String(), "--fence-lease-duration=" + lease.String(),
		"--worker-probe-interval=" + (lease / 2).String(), "--worker-probe-timeout=" + (lease / 2).String(),
	}, o.ManagerFlags...)
}

// spanPrograms returns the files of the manager and of the embedded Job controller.
func spanPrograms(ctx context.Context, o SpanOptions, dir string) (manager, worker string, err error) {
	if o.Programs != "" {
		return o.Programs + "/" + managerProgram, o.Programs + "/" + workerProgram, nil
	}
	o.Progress("building the programs")
	if manager, err = product.Build(ctx, dir, managerProgram); err != nil {
		return "", "", err
	}
	worker, err = product.Build(ctx, dir, workerProgram)
	return manager, worker, err
}
