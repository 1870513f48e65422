package main

import (
	"github.com/spf13/pflag"

	"github.com/jobferry/jobferry/pkg/manager"
)

func addKueue(set *pflag.FlagSet, o *manager.Options) {
	k := &o.Kueue
	set.BoolVar(&k.Disabled, "kueue-disabled", k.Disabled,
		"leave Kueue alone: AdmissionChecks of controller jobferry.dev/dispatcher aren't kept, even if Kueue is there")
	set.StringVar(&k.Namespace, "kueue-namespace", k.Namespace,
		"Kueue's namespace, where MultiKueueClusters have their Secrets")
	set.DurationVar(&k.RetryAfter, "kueue-retry-after", k.RetryAfter,
		"how long quota is held for a Job that no worker has room for, before it's given back")
	set.DurationVar(&k.RequeueAfter, "kueue-requeue-after", k.RequeueAfter,
		"how long a Job whose quota was given back stays out of the queue; it doubles each time")
	set.DurationVar(&k.MaxRequeueAfter, "kueue-max-requeue-after", k.MaxRequeueAfter,
		"how long a Job whose quota was given back stays out of the queue at most")
}
