// Command demo shows Jobferry at work: a hub and two workers on this machine, ordinary Jobs, a live
// view. Its exit code is 0 only if every Job ended as it should; 130 if it was interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/jobferry/jobferry/e2e/demo"
)

const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // as of a shell's command that Ctrl-C ended
)

func main() {
	o, err := parse()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(exitUsage)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// a second Ctrl-C doesn't wait for the clean-up; the rig's reaper does the rest
	context.AfterFunc(ctx, stop)
	switch err := demo.Run(ctx, o); {
	case err == nil:
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "demo: interrupted; all is cleaned up")
		os.Exit(exitInterrupted)
	default:
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(exitFailed)
	}
}

// parse reads the command line. The environment gives the defaults, so that "make demo KEEP=1" is
// all it takes.
func parse() (demo.Options, error) {
	keep, err := strconv.ParseBool(or(os.Getenv("KEEP"), "false"))
	if err != nil {
		return demo.Options{}, fmt.Errorf("KEEP=%s: must be 1 or 0", os.Getenv("KEEP"))
	}
	o := demo.Options{Out: os.Stdout}
	flag.BoolVar(&o.Keep, "keep", keep, "keep the clusters after the result, until Ctrl-C; default: $KEEP")
	controller := flag.String("job-controller", os.Getenv("JOB_CONTROLLER"),
		"who runs the Jobs in the workers, builtin or embedded; default: $JOB_CONTROLLER, or builtin")
	flag.Parse()
	if flag.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	o.JobController, err = demo.ParseJobController(*controller)
	return o, err
}

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}
