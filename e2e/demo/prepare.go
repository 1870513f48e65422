package demo

import (
	"context"
	"errors"
	"fmt"
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

// prepare builds the programs and starts the clusters.
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
	if err := d.getControlPlane(ctx); err != nil {
		return err
	}
	return d.startClusters(ctx)
}

// build makes one of the product's programs, in this run's folder: what it runs is what is in the
// checkout.
func (d *demo) build(ctx context.Context, program string) error {
	file, err := product.Build(ctx, d.dir, program)
	d.programs[program] = file
	return err
}

// getControlPlane fetches or builds Kubernetes itself, if it isn't in the cache.
func (d *demo) getControlPlane(ctx context.Context) error {
	const name = "Get Kubernetes " + string(binaries.Current)
	return d.step(name, "", func() (string, error) {
		done := 0
		_, err := binaries.Ensure(ctx, binaries.Current, func(p binaries.Progress) {
			if p.Phase.Ended() {
				done++
			}
			d.board.update(func(s *state.State) { s.StepNote(name, buildNote(p)) })
		})
		if done == 0 {
			return "already in the cache", err
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
