package nodes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/jobferry/jobferry/e2e/conformance"
	"github.com/jobferry/jobferry/e2e/conformance/front"
	"github.com/jobferry/jobferry/e2e/real"
)

// Options say what to run.
type Options struct {
	// Parts are of conformance.Parts.
	Parts []conformance.Part
	// Short runs, of Kubernetes' cases, those that conformance of a cluster asks for, and the
	// dispatcher with the built-in Job controller only.
	Short bool
	// Logs is the folder for what the cases write.
	Logs string
	Out  io.Writer
}

// Chapters are the runs, for real.Tell. Cases that fail keep none of the runs from happening: the
// last chapter is their error.
func (o Options) Chapters() []real.Chapter {
	r := &runs{Options: o}
	var all []real.Chapter
	if slices.Contains(o.Parts, conformance.DropIn) { // before edge is a worker
		all = append(all, r.dropIn)
	}
	dispatcher := slices.Contains(o.Parts, conformance.Dispatcher)
	hub, jobSet := slices.Contains(o.Parts, conformance.Hub), slices.Contains(o.Parts, conformance.JobSet)
	if dispatcher || hub || jobSet {
		all = append(all, (*real.Story).Install)
	}
	if dispatcher {
		all = append(all, r.inEach(r.throughFront)...)
	}
	if hub || jobSet { // after the others: it changes the clusters
		all = append(all, prepareHub)
	}
	if hub {
		all = append(all, r.inEach(r.onHub(conformance.Hub))...)
	}
	if jobSet {
		all = append(append(all, (*real.Story).InstallJobSet, useImages), r.inEach(r.onHub(conformance.JobSet))...)
	}
	return append(all, func(*real.Story, context.Context) error { return errors.Join(r.failed...) })
}

// runs are the runs of the cases in one world.
type runs struct {
	Options
	failed []error
}

// dropIn runs the cases with jobferry-worker in the built-in's place.
func (r *runs) dropIn(s *real.Story, ctx context.Context) error {
	if err := s.Do(ctx, "helm install of the embedded controller as a drop-in, in edge",
		"helm --kube-context edge install drop-in charts/jobferry-worker --namespace drop-in --create-namespace --wait --timeout 2m --set dropIn=true "+real.ImageValues,
	); err != nil {
		return err
	}
	if err := r.run(ctx, s, conformance.DropIn, real.Edge, "embedded Job controller", s.Cluster(real.Edge).KubeconfigBytes()); err != nil {
		return err
	}
	return s.Do(ctx, "helm uninstall of the drop-in", "helm --kube-context edge uninstall drop-in --namespace drop-in --wait")
}

// inEach runs cases with each worker in turn, as the hub's only one.
func (r *runs) inEach(run func(s *real.Story, ctx context.Context, worker, controller string) error) []real.Chapter {
	with := func(worker, controller string) real.Chapter {
		return func(s *real.Story, ctx context.Context) error {
			ready := "kubectl wait --timeout=2m --for=condition=Ready workercluster/" + worker
			if err := s.Do(ctx, worker+" is ready", ready); err != nil {
				return err
			}
			return run(s, ctx, worker, controller+" Job controller")
		}
	}
	all := []real.Chapter{(*real.Story).RegisterWest, with(real.West, "built-in"), (*real.Story).UnregisterWest}
	if !r.Short {
		all = append(all, (*real.Story).RegisterEdge, with(real.Edge, "embedded"), (*real.Story).UnregisterEdge)
	}
	return all
}

// throughFront runs the cases where hub and worker are shown as one cluster.
func (r *runs) throughFront(s *real.Story, ctx context.Context, worker, controller string) error {
	f, err := front.Serve(s.Cluster(real.Hub).RESTConfig(), s.Cluster(worker).RESTConfig())
	if err != nil {
		return err
	}
	defer f.Close()
	kubeconfig, err := f.Kubeconfig()
	if err != nil {
		return err
	}
	return r.run(ctx, s, conformance.Dispatcher, worker, controller, kubeconfig)
}

// run runs the cases in the cluster of a kubeconfig, whose Pods are in a worker with a Job
// controller. An error is what keeps them from being run.
func (r *runs) run(ctx context.Context, s *real.Story, part conformance.Part, worker, controller string, kubeconfig []byte) error {
	began, m := time.Now(), s.Materials()
	what, name := string(part)+", "+controller, string(part)+"-"+worker
	c := cluster{
		materials: m, suite: suiteOf(part, m), before: before(s, part, worker),
		kubeconfig: filepath.Join(m.Dir, name+".kubeconfig"), logs: filepath.Join(r.Logs, name),
	}
	if err := errors.Join(os.MkdirAll(c.logs, 0o755), os.WriteFile(c.kubeconfig, kubeconfig, 0o600)); err != nil {
		return err
	}
	all, err := c.list(ctx)
	if err != nil {
		return err
	}
	chosen, err := choose(all, conformance.LeftOut[part], r.Short && part != conformance.JobSet)
	if err != nil {
		return err
	}
	fmt.Fprintf(r.Out, "run: %s, %d cases, %d at a time; their output is in %s\n", what, len(chosen), atATime, c.logs)
	result, err := c.runAll(ctx, chosen)
	if err != nil {
		return err
	}
	fmt.Fprintf(r.Out, "%s, after %s: %s\n", what, time.Since(began).Round(time.Second), result.Line(part))
	if err := result.Err(); err != nil {
		r.failed = append(r.failed, fmt.Errorf("%s: %w", what, err))
	}
	return nil
}
