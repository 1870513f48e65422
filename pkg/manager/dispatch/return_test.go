package dispatch

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestEndsWithin has Jobs of ten completions that have run for a minute.
func TestEndsWithin(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, row := range map[string]struct {
		succeeded, completions int32
		within                 time.Duration
		want                   bool
	}{
		"nothing known": {0, 10, time.Hour, false},
		"half, soon":    {5, 10, 61 * time.Second, true},
		"half, later":   {5, 10, 59 * time.Second, false},
		"all":           {10, 10, time.Second, true},
		"fewer by now":  {10, 8, time.Second, true},
	} {
		s := &Snapshot{Now: now, Job: &batchv1.Job{}}
		s.Job.Spec.Completions, s.Job.Status.Succeeded = &row.completions, row.succeeded
		s.Job.Status.StartTime = ptr.To(metav1.NewTime(now.Add(-time.Minute)))
		if got := s.endsWithin(row.within); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
