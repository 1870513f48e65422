package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/jobferry/jobferry/pkg/worker"
)

// jobFlags are the flags that become worker.Options, but for the namespace, which all programs
// have.
type jobFlags struct {
	set     *pflag.FlagSet
	dropIn  bool
	as      string
	options worker.Options
}

func defaultJobFlags() *jobFlags {
	options := worker.DefaultOptions()
	options.TTL = true
	return &jobFlags{options: options}
}

func (f *jobFlags) add(set *pflag.FlagSet) {
	f.set = set
	o := &f.options
	set.BoolVar(&f.dropIn, "drop-in", f.dropIn,
		"replace the built-in Job controller, in clusters where it doesn't run: run Jobs without spec.managedBy, with its finalizer and "+
			"its names of metrics. With --managed-by, the process also runs those Jobs, with --tracking-finalizer")
	set.StringVar(&f.as, "as", f.as,
		"user as whom to make all requests, for policies that name the built-in controller's user: system:serviceaccount:kube-system:job-controller")
	set.StringArrayVar(&o.ManagedBy, "managed-by", o.ManagedBy,
		`value of spec.managedBy whose Jobs to run; repeat for more; "" stands for Jobs without the field`)
	set.StringVar(&o.TrackingFinalizer, "tracking-finalizer", o.TrackingFinalizer, "finalizer of Pods until they are counted")
	set.IntVar(&o.Concurrency, "concurrent-job-syncs", o.Concurrency, "number of Jobs to sync at a time")
	set.DurationVar(&o.PodFailureBackoff, "pod-failure-backoff", o.PodFailureBackoff,
		"delay after the first failed Pod; it doubles with each further one")
	set.DurationVar(&o.MaxPodFailureBackoff, "max-pod-failure-backoff", o.MaxPodFailureBackoff, "longest delay after failed Pods")
	set.DurationVar(&o.SyncBatchPeriod, "sync-batch-period", o.SyncBatchPeriod,
		"how long to collect events of a Job's Pods before a sync; a tenth of this when all Pods, or a quarter of them and at least ten, have ended")
	set.IntVar(&o.MaxUncountedPods, "max-uncounted-pods", o.MaxUncountedPods,
		"number of uncounted Pods that a Job's status may list at a time: a hub takes at most 5,000")
	set.IntVar(&o.MaxPodCreateDeletePerSync, "max-pod-create-delete-per-sync", o.MaxPodCreateDeletePerSync,
		"number of Pods that one sync of a Job may create or delete")
	set.StringVar(&o.MetricsPrefix, "metrics-prefix", o.MetricsPrefix, "prefix of the built-in controller's names of metrics; - for none")
	set.DurationVar(&o.FenceAfter, "fence-after", o.FenceAfter,
		"how long after the expiry of a hub's Lease to stop that hub's Jobs: less than the hub's worker-lost-timeout "+
			"minus the Lease's duration and the Pods' termination grace period; negative: never")
	set.BoolVar(&o.TTL, "ttl", o.TTL, "delete finished Jobs after their ttlSecondsAfterFinished")
}

// workerOptions returns the options that the flags set: one for the Jobs of the built-in, and one
// for Jobs with other values of spec.managedBy.
func (f *jobFlags) workerOptions(namespace string) ([]worker.Options, error) {
	own := f.options
	own.Namespace = namespace
	if !f.dropIn {
		return []worker.Options{own}, own.Validate()
	}
	dropIn := own.DropIn()
	if f.set.Changed("metrics-prefix") {
		dropIn.MetricsPrefix = own.MetricsPrefix
	}
	both := f.set.Changed("managed-by")
	switch {
	case !both && f.set.Changed("tracking-finalizer"):
		return nil, errors.New("--drop-in sets --tracking-finalizer: set it only with --managed-by, for the Jobs that this adds")
	case !both:
		return []worker.Options{dropIn}, dropIn.Validate()
	case slices.ContainsFunc(own.ManagedBy, func(name string) bool { return slices.Contains(dropIn.ManagedBy, name) }):
		return nil, fmt.Errorf("--drop-in runs the Jobs with spec.managedBy %q: name others in --managed-by", dropIn.ManagedBy)
	}
	own.TTL = false // --drop-in deletes all finished Jobs
	return []worker.Options{dropIn, own}, errors.Join(dropIn.Validate(), own.Validate())
}
