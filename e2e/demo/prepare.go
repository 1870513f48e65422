package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jobferry/jobferry/e2e/demo/state"
	"github.com/jobferry/jobferry/e2e/product"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// The product's programs that the demo runs.
const (
	managerProgram = "jobferry-manager"
	workerProgram  = "jobferry-worker"
	pluginProgram  = "kubectl-jobferry"
)

// firstRun tells those patience who run it for the first time.
const firstRun = "the first time this takes minutes"

// signOfLife is how often a build that takes long says so, besides its clock.
const signOfLife = 30 * time.Second

// step does a piece of work and shows that on the board. The work may return a note on what came
// out of it.
func (d *demo) step(name, note string, work func() (string, error)) error {
	d.board.update(func(s *state.State) { s.StepBegan(name, note, time.Now()) })
	note, err := work()
	if err != nil {
		note = strings.SplitN(err.Error(), "\n", 2)[0]
	}
	d.board.update(func(s *state.State) { s.StepEnded(name, note, err != nil, time.Now()) })
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// embedded says whether the workers' Jobs are run by jobferry-worker.
func (d *demo) embedded() bool { return d.JobController == v1alpha1.JobControllerEmbedded }

// prepare gets the programs and starts the clusters.
func (d *demo) prepare(ctx context.Context) error {
	programs := []string{managerProgram, pluginProgram}
	if d.embedded() {
		programs = append(programs, workerProgram)
	}
	for _, program := range programs {
		if err := d.step("Build "+program, "", func() (string, error) { return "", d.build(ctx, program) }); err != nil {
			return err
		}
	}
	helm, err := d.getPrograms(ctx)
	if err != nil {
		return err
	}
	if err := d.startClusters(ctx); err != nil {
		return err
	}
	return d.makeHome(helm)
}

// build makes one of the product's programs, in this run's folder: what it runs is what is in the
// checkout.
func (d *demo) build(ctx context.Context, program string) error {
	_, err := product.Build(ctx, d.bin(), program)
	return err
}

// getPrograms fetches or builds what isn't in the cache: Kubernetes itself, Helm and JobSet. It
// returns the file of Helm.
func (d *demo) getPrograms(ctx context.Context) (helm string, err error) {
	for _, get := range []struct {
		name string
		work func(report func(binaries.Progress)) error
	}{
		{"Kubernetes " + string(binaries.Current), func(report func(binaries.Progress)) error {
			_, err := binaries.Ensure(ctx, binaries.Current, report)
			return err
		}},
		{"Helm", func(report func(binaries.Progress)) (err error) {
			helm, err = binaries.Tool(ctx, binaries.Helm, report)
			return err
		}},
		{"JobSet", func(report func(binaries.Progress)) error {
			_, err := binaries.Tool(ctx, binaries.JobSet, report)
			return err
		}},
	} {
		if err := d.get("Get "+get.name, get.work); err != nil {
			return "", err
		}
	}
	return helm, nil
}

func (d *demo) get(step string, work func(report func(binaries.Progress)) error) error {
	return d.step(step, "", func() (string, error) {
		done := 0
		err := work(func(p binaries.Progress) {
			if p.Phase.Ended() {
				done++
			}
			d.board.update(func(s *state.State) { s.StepNote(step, buildNote(p)) })
		})
		switch done {
		case 0:
			return "already in the cache", err
		case 1:
			return "kept for the next time", err
		}
		return fmt.Sprintf("%d programs, kept for the next time", done), err
	})
}

func buildNote(p binaries.Progress) string {
	note := fmt.Sprintf("%d of %d: %s %s", p.Number, p.Of, p.Phase, p.Program)
	if long := p.Elapsed.Truncate(signOfLife); long > 0 {
		note += " for " + long.String()
	}
	if p.Note != "" {
		note += ", " + p.Note
	}
	return note + "; " + firstRun
}

// makeHome makes what somebody needs who looks around: kubectl and Helm beside the plugin, and a
// kubeconfig with all clusters.
func (d *demo) makeHome(helm string) error {
	for name, file := range map[string]string{"kubectl": d.hub.KubectlProgram(), "helm": helm} {
		if err := os.Symlink(file, d.program(name)); err != nil {
			return err
		}
	}
	all, err := rig.MergeKubeconfigs(append([]*rig.Cluster{d.hub}, d.workers...)...)
	if err != nil {
		return err
	}
	return os.WriteFile(d.kubeconfig(), all, 0o600)
}

// startClusters starts all at once.
func (d *demo) startClusters(ctx context.Context) error {
	clusters := []clusterStart{{rig.Options{Name: "hub"}, "no nodes: Pods can't run here", &d.hub}}
	for i, shape := range workerShapes {
		note := fmt.Sprintf("%d simulated nodes of %s CPU", shape.nodes, shape.cpu)
		clusters = append(clusters, clusterStart{d.workerOptions(shape), note, &d.workers[i]})
	}
	d.board.update(func(s *state.State) {
		for _, c := range clusters {
			s.StepBegan(c.step(), c.note, time.Now())
		}
	})
	errs := make([]error, len(clusters))
	var starting sync.WaitGroup
	for i, c := range clusters {
		starting.Go(func() { errs[i] = d.startCluster(ctx, c) })
	}
	starting.Wait()
	return errors.Join(errs...)
}

// clusterStart is a cluster to be started, and where it goes.
type clusterStart struct {
	options rig.Options
	note    string
	into    **rig.Cluster
}

func (c clusterStart) step() string { return "Start cluster " + c.options.Name }

func (d *demo) startCluster(ctx context.Context, c clusterStart) error {
	c.options.Progress = func(binaries.Progress) {} // all is built
	return d.step(c.step(), c.note, func() (_ string, err error) {
		*c.into, err = rig.Start(ctx, c.options)
		return "", err
	})
}

func (d *demo) workerOptions(shape workerShape) rig.Options {
	o := rig.Options{
		Name:  shape.name,
		Nodes: []rig.Nodes{{Count: shape.nodes, CPU: shape.cpu, Memory: "16Gi", Prefix: shape.name}},
	}
	if d.embedded() {
		o.JobController = rig.None
	}
	return o
}
