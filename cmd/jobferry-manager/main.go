// Command jobferry-manager is the hub controller of Jobferry: it dispatches the hub's Jobs with
// spec.managedBy jobferry.dev/dispatcher to worker clusters.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/pflag"

	"github.com/jobferry/jobferry/pkg/manager"
	"github.com/jobferry/jobferry/pkg/manager/admission"
	"github.com/jobferry/jobferry/pkg/manager/packed"
	"github.com/jobferry/jobferry/pkg/util/process"
)

const summary = "jobferry-manager dispatches the Jobs of a hub cluster to worker clusters."

func main() { process.Main("jobferry-manager", run) }

func run(ctx context.Context, args []string) error {
	flags, options := process.Defaults("jobferry-manager", "hub"), manager.DefaultOptions()
	var aggregated subresourcesFlags
	admits := admission.DefaultOptions()
	err := flags.Parse(args, os.Stdout, summary, func(set *pflag.FlagSet) {
		addWorkers(set, &options)
		addNamespaces(set, &options)
		addHubKeys(set, &options)
		addTiming(set, &options)
		addKueue(set, &options)
		addTracing(set, &options)
		aggregated.add(set)
		addAdmission(set, &admits)
		addPods(set, &options.Pods)
	})
	if err != nil {
		return err
	}
	options.Namespace, admits.Namespace = flags.Namespace, flags.Namespace
	if err := errors.Join(options.Validate(), admits.Validate()); err != nil {
		return err
	}
	if flags.LeaseLabels, err = aggregated.leaseLabels(ctx, flags); err != nil {
		return err
	}
	mgr, err := flags.Manager(manager.NewScheme(), packed.NewCache, manager.CacheOptions(options))
	if err != nil {
		return err
	}
	jobs, flush, err := manager.Setup(ctx, mgr, options)
	if err != nil {
		return err
	}
	aggregated.Explainer, aggregated.Lease = jobs, flags.Name
	if err := aggregated.setup(ctx, mgr, options); err != nil {
		return err
	}
	if err := admission.Setup(mgr, admits); err != nil {
		return err
	}
	defer flush() // the Lease has been released by then
	return mgr.Start(ctx)
}
