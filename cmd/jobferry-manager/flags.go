package main

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/jobferry/jobferry/pkg/manager"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
)

func addWorkers(set *pflag.FlagSet, o *manager.Options) {
	set.StringVar((*string)(&o.Origin), "origin", "",
		"id of this hub in its workers; default: the UID of the hub's namespace kube-system")
	set.IntVar(&o.Concurrency, "concurrency", o.Concurrency, "Jobs worked on at a time")
	set.IntVar(&o.WorkerConcurrency, "worker-concurrency", o.WorkerConcurrency, "of those, how many may wait for one worker")
	c := &o.Connection
	set.Float32Var(&c.QPS, "worker-qps", 1000, "requests per second to each worker's API server, at most")
	set.IntVar(&c.Burst, "worker-burst", 2000, "requests to each worker's API server at once, at most")
	set.DurationVar(&c.DialTimeout, "worker-dial-timeout", 5*time.Second, "time-out of a connection to a worker")
	set.DurationVar(&c.RequestTimeout, "worker-request-timeout", 15*time.Second, "time-out of a request to a worker")
	set.DurationVar(&c.ProbeInterval, "worker-probe-interval", 10*time.Second, "time between two probes of a worker")
	set.DurationVar(&c.WorkerLostTimeout, "worker-lost-timeout", clusters.DefaultWorkerLostTimeout,
		"how long a worker may be not Ready before its Jobs go on elsewhere; spec.workerLostTimeout of its WorkerCluster goes before")
	set.DurationVar(&c.ProbeTimeout, "worker-probe-timeout", 5*time.Second, "time-out of a probe of a worker")
	set.DurationVar(&o.Fence.Duration, "fence-lease-duration", 40*time.Second,
		"how long the Lease lasts that is kept in each worker with the embedded Job controller, in whole seconds; it's renewed four times as often")
}

func addTiming(set *pflag.FlagSet, o *manager.Options) {
	t := &o.Timing
	set.DurationVar(&t.ProgressFloor, "progress-floor", t.ProgressFloor,
		"least time between two status writes of a Job that only report progress; longer while the hub is busy, unless it's 0")
	set.DurationVar(&t.StuckNotice, "stuck-notice", t.StuckNotice,
		"how long a Job may have no running Pod before the worker's reason is shown")
	set.DurationVar(&t.StuckTimeout, "stuck-timeout", t.StuckTimeout,
		"how long a Job may have no running Pod before it's moved to another worker; only if none ever ran")
	set.DurationVar(&t.Recheck, "recheck", t.Recheck, "how often an unfinished Job is looked at without any event")
	set.DurationVar(&o.PassOver, "pass-over", o.PassOver, "how long a worker that can't take a Job is passed over for it")
}
