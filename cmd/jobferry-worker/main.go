// Command jobferry-worker runs Jobs in a worker cluster in place of the
// built-in Job controller: those with spec.managedBy jobferry.dev/worker, or,
// with --drop-in, all that the built-in would run.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/jobferry/jobferry/pkg/worker"
)

func main() {
	err := run(ctrl.SetupSignalHandler(), os.Args[1:])
	switch {
	case errors.Is(err, pflag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "jobferry-worker:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := defaultFlags()
	if err := flags.parse(args, os.Stdout); err != nil {
		return err
	}
	logger, err := flags.logger(os.Stderr)
	if err != nil {
		return err
	}
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	cluster, err := flags.clusterConfig()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(cluster, flags.managerOptions())
	if err != nil {
		return fmt.Errorf("cluster %s: %w", cluster.Host, err)
	}
	for name, add := range map[string]func(string, healthz.Checker) error{
		"healthz": mgr.AddHealthzCheck, "readyz": mgr.AddReadyzCheck,
	} {
		if err := add(name, healthz.Ping); err != nil {
			return err
		}
	}
	if err := worker.Setup(mgr, flags.options); err != nil {
		return fmt.Errorf("cluster %s: %w", cluster.Host, err)
	}
	return mgr.Start(ctx)
}

func (f *flags) managerOptions() ctrl.Options {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(batchv1.AddToScheme(scheme))
	options := ctrl.Options{
		Scheme: scheme,
		// The fields' managers are half of a small Pod, and nobody looks at them.
		Cache:                         cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
		Metrics:                       metricsserver.Options{BindAddress: f.metricsAddress, SecureServing: f.metricsSecure},
		HealthProbeBindAddress:        f.healthAddress,
		LeaderElection:                f.leaderElect,
		LeaderElectionID:              "jobferry-worker",
		LeaderElectionNamespace:       f.namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &f.leaseDuration,
		RenewDeadline:                 &f.renewDeadline,
		RetryPeriod:                   &f.retryPeriod,
		GracefulShutdownTimeout:       &f.shutdownTimeout,
	}
	if f.metricsSecure {
		options.Metrics.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	return options
}
