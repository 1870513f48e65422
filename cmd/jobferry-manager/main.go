// Command jobferry-manager is the hub controller of Jobferry: it dispatches the
// hub's Jobs with spec.managedBy jobferry.dev/dispatcher to worker clusters.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/jobferry/jobferry/pkg/manager"
)

func main() {
	err := run(ctrl.SetupSignalHandler(), os.Args[1:])
	switch {
	case errors.Is(err, pflag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "jobferry-manager:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := defaultFlags()
	if err := flags.parse(args); err != nil {
		return err
	}
	logger, err := flags.logger(os.Stderr)
	if err != nil {
		return err
	}
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	hub, err := flags.hubConfig()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(hub, flags.managerOptions())
	if err != nil {
		return fmt.Errorf("hub %s: %w", hub.Host, err)
	}
	for name, add := range map[string]func(string, healthz.Checker) error{
		"healthz": mgr.AddHealthzCheck, "readyz": mgr.AddReadyzCheck,
	} {
		if err := add(name, healthz.Ping); err != nil {
			return err
		}
	}
	if err := manager.Setup(ctx, mgr, flags.options); err != nil {
		return fmt.Errorf("hub %s: %w", hub.Host, err)
	}
	return mgr.Start(ctx)
}

func (f *flags) managerOptions() ctrl.Options {
	options := ctrl.Options{
		Scheme:                        manager.NewScheme(),
		Cache:                         manager.CacheOptions(f.options.Namespace),
		Metrics:                       metricsserver.Options{BindAddress: f.metricsAddress, SecureServing: f.metricsSecure},
		HealthProbeBindAddress:        f.healthAddress,
		PprofBindAddress:              f.pprofAddress,
		LeaderElection:                f.leaderElect,
		LeaderElectionID:              "jobferry-manager",
		LeaderElectionNamespace:       f.options.Namespace,
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
