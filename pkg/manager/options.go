package manager

import (
	"errors"
	"fmt"
	"time"

	"github.com/jobferry/jobferry/pkg/api/namespaces"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/fence"
	"github.com/jobferry/jobferry/pkg/manager/group"
	"github.com/jobferry/jobferry/pkg/manager/job"
	"github.com/jobferry/jobferry/pkg/manager/kueue"
	"github.com/jobferry/jobferry/pkg/manager/packed"
	"github.com/jobferry/jobferry/pkg/manager/tokens"
	"github.com/jobferry/jobferry/pkg/manager/tracing"
	"github.com/jobferry/jobferry/pkg/manager/tracing/spans"
	"github.com/jobferry/jobferry/pkg/util/version"
)

// Options are the settings of the manager.
type Options struct {
	job.Options
	// HubJobs limits the cache of the hub's Jobs.
	HubJobs *packed.HubJobs
	// Fence are the Leases that the hub keeps in its workers; Setup sets their origin.
	Fence fence.Options
	// Tokens is the renewal of the workers' tokens; Setup sets its namespace and metrics.
	Tokens tokens.Options
	// Tracing is where traces go; Setup sets the hub's id.
	Tracing tracing.Options
	// Connection are the limits and time-outs of the connections to workers; Setup sets the rest.
	Connection clusters.Options
	// Pods is whether the hub shows the Pods of mirrors.
	Pods PodsOptions
}

// DefaultOptions returns the defaults.
func DefaultOptions() Options {
	traces := tracing.Options{SamplingRatePerMillion: spans.Million, Service: "jobferry-manager", Version: version.Get()}
	return Options{HubJobs: packed.NewHubJobs(), Tracing: traces, Options: job.Options{
		Namespace:         v1alpha1.SystemNamespace,
		Concurrency:       128,
		WorkerConcurrency: 16,
		PassOver:          5 * time.Minute,
		Groups:            group.Kinds{group.JobSetKind},
		Kueue:             kueue.DefaultOptions(),
		Timing:            dispatch.DefaultTiming(),

		DefaultPodSecurity: namespaces.Baseline,
	}, Pods: PodsOptions{Port: DefaultPodsPort}}
}

// Validate reports all settings that can't be used.
func (o *Options) Validate() error {
	var errs []error
	if o.Namespace == "" {
		errs = append(errs, errors.New("namespace: must not be empty"))
	}
	if o.Origin != "" {
		errs = append(errs, o.Origin.Validate())
	}
	if o.Concurrency < 1 {
		errs = append(errs, fmt.Errorf("concurrency: must be at least 1, not %d", o.Concurrency))
	}
	if o.WorkerConcurrency < 1 || o.WorkerConcurrency > o.Concurrency {
		errs = append(errs, fmt.Errorf("worker concurrency: must be between 1 and the concurrency (%d), not %d",
			o.Concurrency, o.WorkerConcurrency))
	}
	errs = append(errs, o.DefaultPodSecurity.Validate())
	if err := o.Groups.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("kinds of groups: %w", err))
	}
	if err := o.HubKeys.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("keys that stay on the hub: %w", err))
	}
	if err := o.CarryAccountAnnotations.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("carried annotations of ServiceAccounts: %w", err))
	}
	errs = append(errs, o.checkDurations()...)
	if err := o.HubJobs.Validate(); err != nil {
		errs = append(errs, err)
	}
	if err := o.Fence.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("fence: %w", err))
	}
	errs = append(errs, o.Tracing.Validate(), o.Pods.validate())
	if err := o.Kueue.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("kueue: %w", err))
	}
	return errors.Join(errs...)
}

func (o *Options) checkDurations() []error {
	var errs []error
	for name, d := range map[string]time.Duration{
		"progress floor": o.Timing.ProgressFloor, "stuck notice": o.Timing.StuckNotice,
		"stuck timeout": o.Timing.StuckTimeout, "release timeout": o.Timing.ReleaseTimeout, "recheck": o.Timing.Recheck, "pass-over time": o.PassOver,
	} {
		if d < 0 || d == 0 && name != "progress floor" {
			errs = append(errs, fmt.Errorf("%s: must be positive, but is %s", name, d))
		}
	}
	for name, d := range map[string]time.Duration{
		"worker dial timeout": o.Connection.DialTimeout, "worker request timeout": o.Connection.RequestTimeout,
		"worker probe interval": o.Connection.ProbeInterval, "worker probe timeout": o.Connection.ProbeTimeout,
	} {
		if d < 0 {
			errs = append(errs, fmt.Errorf("%s: must not be negative, but is %s", name, d))
		}
	}
	if d := o.Connection.WorkerLostTimeout; d != 0 && d < time.Second {
		errs = append(errs, fmt.Errorf("worker lost timeout: must be at least 1s, but is %s", d))
	}
	if o.Timing.StuckTimeout < o.Timing.StuckNotice {
		errs = append(errs, fmt.Errorf("stuck timeout: must not be shorter than the stuck notice (%s), but is %s",
			o.Timing.StuckNotice, o.Timing.StuckTimeout))
	}
	return errs
}
