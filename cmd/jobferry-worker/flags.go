package main

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/jobferry/jobferry/pkg/worker"
)

// jobFlags say how Jobs are run.
type jobFlags struct {
	set     *pflag.FlagSet
	dropIn  bool
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
		"take the built-in controller's place: run Jobs without spec.managedBy, with its finalizer and its names of metrics; only where it doesn't run")
	set.StringArrayVar(&o.ManagedBy, "managed-by", o.ManagedBy,
		`value of spec.managedBy whose Jobs are run, may be given more than once; "" stands for Jobs without it`)
	set.StringVar(&o.TrackingFinalizer, "tracking-finalizer", o.TrackingFinalizer, "finalizer on Pods that aren't counted yet")
	set.IntVar(&o.Concurrency, "concurrent-job-syncs", o.Concurrency, "Jobs synced at a time")
	set.DurationVar(&o.PodFailureBackoff, "pod-failure-backoff", o.PodFailureBackoff,
		"delay after a first failed Pod; doubles with each further one")
	set.DurationVar(&o.MaxPodFailureBackoff, "max-pod-failure-backoff", o.MaxPodFailureBackoff, "where doubling stops")
	set.DurationVar(&o.SyncBatchPeriod, "sync-batch-period", o.SyncBatchPeriod,
		"how long events of a Job's Pods are collected before it is synced; a tenth of it once all have ended, or a quarter that is ten or more")
	set.IntVar(&o.MaxUncountedPods, "max-uncounted-pods", o.MaxUncountedPods,
		"Pods listed in a Job's status at a time until they are counted")
	set.IntVar(&o.MaxPodCreateDeletePerSync, "max-pod-create-delete-per-sync", o.MaxPodCreateDeletePerSync,
		"Pods a Job may create or delete before others get their turn")
	set.StringVar(&o.MetricsPrefix, "metrics-prefix", o.MetricsPrefix, "what is put before the built-in controller's names of metrics; - for nothing")
	set.DurationVar(&o.FenceAfter, "fence-after", o.FenceAfter,
		"how long after the expiry of a hub's Lease that hub's Jobs are stopped: less than the hub's worker-lost-timeout, "+
			"less the Lease's duration and the Pods' termination grace period; negative: never")
	set.BoolVar(&o.TTL, "ttl", o.TTL, "delete finished Jobs after their ttlSecondsAfterFinished")
}

// workerOptions returns the options that the arguments make.
func (f *jobFlags) workerOptions() (worker.Options, error) {
	options := f.options
	if f.dropIn {
		prefix := options.MetricsPrefix
		if f.set.Changed("managed-by") || f.set.Changed("tracking-finalizer") {
			return options, errors.New("--drop-in chooses --managed-by and --tracking-finalizer: don't set them as well")
		}
		options = options.DropIn()
		if f.set.Changed("metrics-prefix") {
			options.MetricsPrefix = prefix
		}
	}
	return options, options.Validate()
}
