// Command conformance runs Kubernetes' own tests of Jobs, and JobSet's, against Jobferry; `make
// conformance`. It ends with 0: all passed, 1: something failed, 77: real nodes can't run on this
// machine, so that a part was not tried.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/jobferry/jobferry/e2e/conformance"
	"github.com/jobferry/jobferry/e2e/conformance/integration"
	"github.com/jobferry/jobferry/e2e/conformance/nodes"
	"github.com/jobferry/jobferry/e2e/real"
	"github.com/jobferry/jobferry/e2e/real/sandbox"
	"github.com/jobferry/jobferry/e2e/rig/reap"
)

// inside is the argument by which the program is the first process of the sandbox.
const inside = "inside"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	skipped, err := run(ctx, os.Args[1:])
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	case skipped:
		os.Exit(real.Skipped)
	}
}

func run(ctx context.Context, args []string) (skipped bool, err error) {
	switch {
	case len(args) == 4 && args[0] == real.BuildImageCommand:
		return false, real.BuildImage(ctx, args[1], args[2], args[3])
	case len(args) > 2 && args[0] == inside:
		o, err := parse(args[2:])
		if err != nil {
			return false, err
		}
		return false, real.Tell(ctx, args[1], os.Stdout, o.Chapters()...)
	}
	o, err := parse(args)
	if err != nil {
		return false, err
	}
	return outside(ctx, o, args)
}

// parse reads the flags. The folder of the logs is made.
func parse(args []string) (nodes.Options, error) {
	o := nodes.Options{Out: os.Stdout}
	flags := flag.NewFlagSet("conformance", flag.ContinueOnError)
	flags.Func("part", "part to run, or several, separated by commas; default: all", func(text string) error {
		for name := range strings.SplitSeq(text, ",") {
			if !slices.Contains(conformance.Parts, conformance.Part(name)) {
				return fmt.Errorf("%q is none of %v", name, conformance.Parts)
			}
			o.Parts = append(o.Parts, conformance.Part(name))
		}
		return nil
	})
	flags.BoolVar(&o.Short, "short", false, "on real nodes, of Kubernetes' cases only those that conformance of a cluster asks for, and the dispatcher with the built-in Job controller only")
	flags.StringVar(&o.Logs, "logs", "conformance-logs", "folder for what the tests write")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unknown arguments %q", flags.Args())
	}
	if len(o.Parts) == 0 {
		o.Parts = conformance.Parts
	}
	var err error
	if o.Logs, err = filepath.Abs(o.Logs); err != nil {
		return o, err
	}
	return o, os.MkdirAll(o.Logs, 0o755)
}

// outside runs the parts, each in a folder that is removed at the end.
func outside(ctx context.Context, o nodes.Options, args []string) (skipped bool, err error) {
	dir, err := os.MkdirTemp("", "jobferry-conformance-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	reaper, err := reap.Shared()
	if err != nil {
		return false, err
	}
	if err := reaper.WatchDir(dir); err != nil {
		return false, err
	}
	var failed error
	if slices.Contains(o.Parts, conformance.Integration) {
		failed = runIntegration(ctx, o, filepath.Join(dir, "integration"))
	}
	if onlyIntegration(o.Parts) || ctx.Err() != nil {
		return false, failed
	}
	if !real.CanRun() {
		return true, failed
	}
	return false, errors.Join(failed, runNodes(ctx, o, filepath.Join(dir, "nodes"), args))
}

func onlyIntegration(parts []conformance.Part) bool {
	return !slices.ContainsFunc(parts, func(p conformance.Part) bool { return p != conformance.Integration })
}

func runIntegration(ctx context.Context, o nodes.Options, dir string) error {
	result, err := integration.Run(ctx, dir, o.Logs, o.Out)
	if result.Total() > 0 {
		fmt.Fprintln(o.Out, result.Line(conformance.Integration))
	}
	if err := errors.Join(err, result.Err()); err != nil {
		return fmt.Errorf("integration: %w", err)
	}
	return nil
}

// runNodes prepares, and runs the parts that need real nodes in a sandbox.
func runNodes(ctx context.Context, o nodes.Options, dir string, args []string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if _, err := real.Prepare(ctx, dir, os.Stdout, o.Steps()...); err != nil {
		return err
	}
	failed := sandbox.Run(ctx, append([]string{inside, dir}, args...)...)
	if err := sandbox.Clean(context.WithoutCancel(ctx)); err != nil {
		fmt.Fprintln(os.Stderr, "conformance: cgroups stay:", err)
	}
	return failed
}
