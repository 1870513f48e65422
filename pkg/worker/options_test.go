package worker

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/worker/plan"
)

func TestDefaultsAreTheDocumentedOnes(t *testing.T) {
	o := DefaultOptions()
	if o.ManagedBy[0] != "jobferry.dev/worker" || o.TrackingFinalizer != "jobferry.dev/job-tracking" || o.Concurrency != 5 ||
		o.PodFailureBackoff != 10*time.Second || o.MaxPodFailureBackoff != 6*time.Minute || o.SyncBatchPeriod != time.Second ||
		o.MaxUncountedPods != 500 || o.MaxPodCreateDeletePerSync != 500 || o.TTL {
		t.Errorf("defaults %+v", o)
	}
}

func TestValidate(t *testing.T) {
	for _, row := range []struct {
		name    string
		options Options
		want    string // part of the error, empty for none
	}{
		{"nothing set", Options{}, ""},
		{"drop-in", Options{}.DropIn(), ""},
		{"a finalizer without a domain", Options{Options: plan.Options{TrackingFinalizer: "tracking"}}, "want domain/name"},
		{"the built-in's finalizer for other Jobs", Options{Options: plan.Options{TrackingFinalizer: batchv1.JobTrackingFinalizer}}, "is the built-in controller's"},
		{"negative concurrency", Options{Concurrency: -1}, "concurrency is -1"},
		{"no Pods per sync", Options{Options: plan.Options{MaxPodCreateDeletePerSync: -5}}, "per sync is -5"},
		{"no uncounted Pods", Options{Options: plan.Options{MaxUncountedPods: -1}}, "uncounted pods is -1"},
		{"as many uncounted Pods as a hub takes", Options{Options: plan.Options{MaxUncountedPods: 5000}}, ""},
		{"more of them", Options{Options: plan.Options{MaxUncountedPods: 5001}}, "a hub takes at most 5000"},
		{"back-off upside down", Options{Options: plan.Options{PodFailureBackoff: time.Hour}}, "at most the second"},
		{"negative batch period", Options{Options: plan.Options{SyncBatchPeriod: -1}}, "sync batch period"},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := row.options.Validate()
			if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}

func TestOptionsSideBySide(t *testing.T) {
	if err := validateAll([]Options{Options{}.DropIn(), {}}); err != nil {
		t.Errorf("drop-in and its own Jobs: %v", err)
	}
	if err := validateAll([]Options{{}, {ManagedBy: []string{"jobferry.dev/worker"}}}); err == nil || !strings.Contains(err.Error(), `"jobferry.dev/worker" is in two`) {
		t.Errorf("the same Jobs twice: %v", err)
	}
	if err := validateAll([]Options{{}, {ManagedBy: []string{"a/b"}, Concurrency: -1}}); err == nil {
		t.Error("the second one's error is lost")
	}
}

// In the built-in's place, the queues have its queues' names.
func TestNames(t *testing.T) {
	if got := (Options{}.DropIn().names()); got != (names{"job", "job_orphan_pod", "ttl_jobs_to_delete"}) {
		t.Errorf("drop-in: %+v", got)
	}
	if got := DefaultOptions().names(); got != (names{"worker-job", "worker-orphan", "worker-expiry"}) {
		t.Errorf("default: %+v", got)
	}
}

func TestClaims(t *testing.T) {
	unset, builtIn := aJob(func(j *batchv1.Job) { j.Spec.ManagedBy = nil }), aJob(func(j *batchv1.Job) { j.Spec.ManagedBy = ptr.To(batchv1.JobControllerName) })
	for name, row := range map[string]struct {
		options           Options
		unset, named, own bool
	}{
		"default": {DefaultOptions(), false, false, true},
		"drop-in": {DefaultOptions().DropIn(), true, true, false},
	} {
		if row.options.manages(unset) != row.unset || row.options.manages(builtIn) != row.named || row.options.manages(aJob()) != row.own {
			t.Errorf("%s manages other Jobs than it should", name)
		}
	}
}
