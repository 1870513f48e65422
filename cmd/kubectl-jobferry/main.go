// Command kubectl-jobferry is kubectl's plugin for Jobferry. With it on the PATH, call kubectl
// jobferry.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // the login plugins of kubectl's kubeconfigs
	"k8s.io/utils/clock"

	"github.com/jobferry/jobferry/pkg/plugin"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	return plugin.Run(ctx, os.Args[1:], streams, clock.RealClock{})
}
