// Command jobferry-worker runs Jobs in a worker cluster in place of the built-in Job controller:
// those with spec.managedBy jobferry.dev/worker, or, with --drop-in, all that the built-in would
// run.
package main

import (
	"context"
	"fmt"
	"os"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/utils/clock"

	"github.com/jobferry/jobferry/pkg/util/pages"
	"github.com/jobferry/jobferry/pkg/util/process"
	"github.com/jobferry/jobferry/pkg/util/revision"
	"github.com/jobferry/jobferry/pkg/worker"
)

const summary = "jobferry-worker runs the Jobs of a cluster that no built-in Job controller runs."

func main() { process.Main("jobferry-worker", run) }

func run(ctx context.Context, args []string) error {
	flags, jobs := process.Defaults("jobferry-worker", "cluster"), defaultJobFlags()
	if err := flags.Parse(args, os.Stdout, summary, jobs.add); err != nil {
		return err
	}
	options, err := jobs.workerOptions(flags.Namespace)
	if err != nil {
		return err
	}
	flags.Impersonate = jobs.as
	mgr, err := flags.Manager(newScheme(), pages.NewCache, worker.CacheOptions(options))
	if err != nil {
		return err
	}
	if err := mgr.Add(revision.NewGuard(mgr.GetAPIReader(), clock.RealClock{})); err != nil {
		return err
	}
	if err := worker.Setup(mgr, options...); err != nil {
		return fmt.Errorf("cluster %s: %w", mgr.GetConfig().Host, err)
	}
	return mgr.Start(ctx)
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(batchv1.AddToScheme(scheme))
	utilruntime.Must(schedulingv1beta1.AddToScheme(scheme))
	return scheme
}
