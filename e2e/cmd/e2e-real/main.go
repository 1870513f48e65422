// Command e2e-real installs Jobferry with Helm on real nodes, and runs real Jobs through it; `make
// e2e-real`. It needs root. It ends with 0: all as it should be, 1: something isn't, 77: nothing
// was tried, as this machine can't.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/jobferry/jobferry/e2e/real"
	"github.com/jobferry/jobferry/e2e/real/sandbox"
)

// inside is the argument by which the program is the first process of the sandbox.
const inside = "inside"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "e2e-real:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 4 && args[0] == real.BuildImageCommand:
		return real.BuildImage(ctx, args[1], args[2], args[3])
	case len(args) == 2 && args[0] == inside:
		return real.Tell(ctx, args[1], os.Stdout, real.Chapters...)
	case len(args) == 0:
		return outside(ctx)
	default:
		return fmt.Errorf("unknown arguments %q: it takes none", args)
	}
}

// outside prepares, runs the story in the sandbox, and cleans up.
func outside(ctx context.Context) error {
	if !real.CanRun() {
		os.Exit(real.Skipped)
	}
	dir, err := os.MkdirTemp("", "jobferry-real-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if _, err := real.Prepare(ctx, dir, os.Stdout, real.JobSet); err != nil {
		return err
	}
	failed := sandbox.Run(ctx, inside, dir)
	if err := sandbox.Clean(context.WithoutCancel(ctx)); err != nil {
		fmt.Fprintln(os.Stderr, "e2e-real: cgroups stay:", err)
	}
	return failed
}
