package worker

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/worker/fence"
	"github.com/jobferry/jobferry/pkg/worker/plan"
)

// Options configure Setup. The zero value of each field stands for its default, which is the
// built-in controller's unless said otherwise.
type Options struct {
	// ManagedBy are the values of spec.managedBy whose Jobs this controller runs. An empty string
	// stands for Jobs without the field. Default: jobferry.dev/worker.
	ManagedBy []string
	// Options are those of the decisions about each Job.
	plan.Options
	// Concurrency is the number of Jobs synced at a time. Default: 5.
	Concurrency int
	// TTL deletes finished Jobs after ttlSecondsAfterFinished: in the built-in's place all of them,
	// otherwise those that this controller runs. Leave it off where a kube-controller-manager runs
	// its own TTL controller, which handles every Job whatever its spec.managedBy. Default: off.
	TTL bool
	// FenceAfter is how long after the expiry of a hub's Lease the controller stops that hub's
	// Jobs, see package fence. It must be less than the hub's time-out for lost workers (15m by
	// default) less the Lease's duration (40s) and the termination grace period of the Pods. Jobs
	// without a hub, and of hubs without a Lease, run on. Default: 10m; negative: never, and no
	// Lease is watched.
	FenceAfter time.Duration
	// Namespace is where the controller has a Job of its own if it runs the built-in's Jobs: by that
	// Job it notices another Job controller. Default: jobferry-system.
	Namespace string
	// MetricsPrefix precedes the built-in's names of the metrics. Default: jobferry_; a single dash
	// stands for none.
	MetricsPrefix string
}

// DropIn returns the options of a controller that replaces the built-in: it runs the same Jobs,
// with the same finalizer and names of the metrics. It has no fence: isFenceable says why.
func (o Options) DropIn() Options {
	o.ManagedBy = []string{"", batchv1.JobControllerName}
	o.TrackingFinalizer = batchv1.JobTrackingFinalizer
	o.MetricsPrefix = noPrefix
	o.FenceAfter = -1
	return o
}

const noPrefix = "-"

// DefaultOptions are the zero Options with every default filled in.
func DefaultOptions() Options { return Options{}.withDefaults() }

// withDefaults fills in the fields that aren't set.
func (o Options) withDefaults() Options {
	if len(o.ManagedBy) == 0 {
		o.ManagedBy = []string{v1alpha1.ManagedByWorker}
	}
	o.TrackingFinalizer = cmp.Or(o.TrackingFinalizer, v1alpha1.FinalizerJobTracking)
	o.Concurrency = cmp.Or(o.Concurrency, 5)
	o.PodFailureBackoff = cmp.Or(o.PodFailureBackoff, 10*time.Second)
	o.MaxPodFailureBackoff = cmp.Or(o.MaxPodFailureBackoff, 6*time.Minute)
	o.SyncBatchPeriod = cmp.Or(o.SyncBatchPeriod, time.Second)
	o.MaxUncountedPods = cmp.Or(o.MaxUncountedPods, 500)
	o.MaxPodCreateDeletePerSync = cmp.Or(o.MaxPodCreateDeletePerSync, 500)
	o.MetricsPrefix = cmp.Or(o.MetricsPrefix, "jobferry_")
	o.Namespace = cmp.Or(o.Namespace, v1alpha1.SystemNamespace)
	o.FenceAfter = cmp.Or(o.FenceAfter, fence.DefaultAfter)
	return o
}

// Validate returns what is wrong with the options, nil if nothing is.
func (o Options) Validate() error {
	o = o.withDefaults()
	var errs []error
	if msgs := validation.IsQualifiedName(o.TrackingFinalizer); len(msgs) > 0 || !strings.Contains(o.TrackingFinalizer, "/") {
		errs = append(errs, fmt.Errorf("tracking finalizer %q: want domain/name", o.TrackingFinalizer))
	}
	if !o.replacesBuiltIn() && o.TrackingFinalizer == batchv1.JobTrackingFinalizer {
		errs = append(errs, fmt.Errorf("tracking finalizer %s is the built-in controller's: use it for its Jobs only", o.TrackingFinalizer))
	}
	for name, n := range map[string]int{
		"concurrency": o.Concurrency, "max uncounted pods": o.MaxUncountedPods,
		"max pods created or deleted per sync": o.MaxPodCreateDeletePerSync,
	} {
		if n < 1 {
			errs = append(errs, fmt.Errorf("%s is %d: want at least 1", name, n))
		}
	}
	if o.MaxUncountedPods > mirror.MaxUncountedPods {
		errs = append(errs, fmt.Errorf("max uncounted pods is %d: a hub takes at most %d", o.MaxUncountedPods, mirror.MaxUncountedPods))
	}
	if o.PodFailureBackoff < 0 || o.MaxPodFailureBackoff < o.PodFailureBackoff {
		errs = append(errs, fmt.Errorf("pod failure back-off %v to %v: want the first to be at most the second", o.PodFailureBackoff, o.MaxPodFailureBackoff))
	}
	if o.SyncBatchPeriod < 0 {
		errs = append(errs, fmt.Errorf("sync batch period is %v: want it not to be negative", o.SyncBatchPeriod))
	}
	return errors.Join(errs...)
}

// validateAll returns what is wrong with options that are to work side by side, nil if nothing is.
func validateAll(all []Options) error {
	var errs []error
	by := map[string]int{}
	for i, o := range all {
		errs = append(errs, o.Validate())
		for _, name := range o.withDefaults().ManagedBy {
			if other, ok := by[name]; ok && other != i {
				errs = append(errs, fmt.Errorf("spec.managedBy %q is in two of the options: each Job is run by one controller", name))
			}
			by[name] = i
		}
	}
	return errors.Join(errs...)
}

// replacesBuiltIn reports whether this controller runs Jobs that the built-in would run.
func (o Options) replacesBuiltIn() bool {
	return slices.Contains(o.ManagedBy, "") || slices.Contains(o.ManagedBy, batchv1.JobControllerName)
}

// manages reports whether this controller manages the Job. spec.managedBy is immutable.
func (o Options) manages(job *batchv1.Job) bool {
	return slices.Contains(o.ManagedBy, ptr.Deref(job.Spec.ManagedBy, "")) && !o.isProbe(job)
}

// expires reports whether this controller deletes the Job after its TTL. The built-in in charge of
// that does so whatever spec.managedBy is.
func (o Options) expires(job *batchv1.Job) bool { return o.replacesBuiltIn() || o.manages(job) }

// names of the controllers, for logs and for the metrics of their queues: in the built-in's place
// those of its queues, so that its dashboards keep working.
type names struct{ jobs, orphans, expiry string }

func (o Options) names() names {
	if o.replacesBuiltIn() {
		return names{"job", "job_orphan_pod", "ttl_jobs_to_delete"}
	}
	return names{"worker-job", "worker-orphan", "worker-expiry"}
}
