package nodes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jobferry/jobferry/e2e/conformance"
	"github.com/jobferry/jobferry/e2e/conformance/front"
	"github.com/jobferry/jobferry/e2e/real"
)

// Options say what to run.
type Options struct {
	// Parts are of conformance.Parts.
	Parts []conformance.Part
	// Short runs the cases that conformance of a cluster asks for, and the dispatcher with the
	// built-in Job controller only.
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
	if slices.Contains(o.Parts, conformance.Dispatcher) {
		all = append(all, (*real.Story).Install, r.throughWest)
		if !o.Short {
			all = append(all, r.throughEdge)
		}
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
	kubeconfig := filepath.Join(s.Materials().Dir, "edge.kubeconfig")
	if err := os.WriteFile(kubeconfig, s.Cluster(real.Edge).KubeconfigBytes(), 0o600); err != nil {
		return err
	}
	if err := r.run(ctx, s, conformance.DropIn, "drop-in", kubeconfig); err != nil {
		return err
	}
	return s.Do(ctx, "helm uninstall of the drop-in", "helm --kube-context edge uninstall drop-in --namespace drop-in --wait")
}

func (r *runs) throughWest(s *real.Story, ctx context.Context) error {
	if err := s.RegisterWest(ctx); err != nil {
		return err
	}
	if err := r.through(ctx, s, real.West, "dispatcher, built-in Job controller"); err != nil {
		return err
	}
	return s.Do(ctx, "kubectl jobferry unregister west", "kubectl jobferry unregister west --worker-context west --yes")
}

func (r *runs) throughEdge(s *real.Story, ctx context.Context) error {
	if err := s.RegisterEdge(ctx); err != nil {
		return err
	}
	return r.through(ctx, s, real.Edge, "dispatcher, embedded Job controller")
}

// through runs the cases through the hub, with a worker.
func (r *runs) through(ctx context.Context, s *real.Story, worker, what string) error {
	if err := s.Do(ctx, worker+" is ready", "kubectl wait --timeout=2m --for=condition=Ready workercluster/"+worker); err != nil {
		return err
	}
	f, err := front.Serve(s.Cluster(real.Hub).RESTConfig(), s.Cluster(worker).RESTConfig())
	if err != nil {
		return err
	}
	defer f.Close()
	content, err := f.Kubeconfig()
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(s.Materials().Dir, "front-"+worker+".kubeconfig")
	if err := os.WriteFile(kubeconfig, content, 0o600); err != nil {
		return err
	}
	return r.run(ctx, s, conformance.Dispatcher, what, kubeconfig)
}

// run runs the cases in the cluster of a kubeconfig. An error is what keeps them from being run.
func (r *runs) run(ctx context.Context, s *real.Story, part conformance.Part, what, kubeconfig string) error {
	began := time.Now()
	c := cluster{materials: s.Materials(), kubeconfig: kubeconfig, logs: filepath.Join(r.Logs, strings.TrimSuffix(filepath.Base(kubeconfig), ".kubeconfig"))}
	if err := os.MkdirAll(c.logs, 0o755); err != nil {
		return err
	}
	all, err := c.list(ctx)
	if err != nil {
		return err
	}
	chosen, err := choose(all, conformance.LeftOut[part], r.Short)
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
