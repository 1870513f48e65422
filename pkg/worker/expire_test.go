package worker

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestExpiry(t *testing.T) {
	ended := func(secondsAgo int) func(*batchv1.Job) {
		return func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{
				Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-time.Duration(secondsAgo) * time.Second)),
			}}
		}
	}
	ttl := func(seconds int32) func(*batchv1.Job) {
		return func(j *batchv1.Job) { j.Spec.TTLSecondsAfterFinished = &seconds }
	}
	others := func(j *batchv1.Job) { j.Spec.ManagedBy = ptr.To("example.com/other") }
	for _, row := range []struct {
		name         string
		cached, live *batchv1.Job
		wait         time.Duration
		deleted      bool
	}{
		{"not finished", aJob(ttl(0)), nil, 0, false},
		{"no TTL", aJob(ended(99)), nil, 0, false},
		{"another controller's", aJob(ended(99), ttl(0), others), nil, 0, false},
		{"not yet", aJob(ended(10), ttl(30)), nil, 20 * time.Second, false},
		{"expired", aJob(ended(30), ttl(30)), nil, 0, true},
		{"at once", aJob(ended(0), ttl(0)), nil, 0, true},
		{"the TTL was raised a moment ago", aJob(ended(30), ttl(30)), aJob(ended(30), ttl(90)), 60 * time.Second, false},
		{"the Job was made anew", aJob(ended(30), ttl(30)), aJob(ttl(30), func(j *batchv1.Job) { j.UID = "new" }), 0, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := newCluster(t, Options{}, row.cached)
			live := c
			if row.live != nil {
				live = newCluster(t, Options{}, row.live)
			}
			m, err := newMetrics(prometheus.NewRegistry(), "")
			if err != nil {
				t.Fatal(err)
			}
			x := &expire{client: c.jobs.client, live: live.api, metrics: m, options: DefaultOptions(), clock: c.clock}
			result, err := x.Reconcile(t.Context(), requestFor(row.cached))
			if err != nil {
				t.Fatal(err)
			}
			if result.RequeueAfter != row.wait || (c.count("delete") == 1) != row.deleted {
				t.Errorf("waits %v, writes %v", result.RequeueAfter, c.writes)
			}
		})
	}
}

// The built-in's TTL is for all Jobs, whoever runs them.
func TestExpiryInTheBuiltInsPlace(t *testing.T) {
	job := aJob(func(j *batchv1.Job) {
		j.Spec.ManagedBy, j.Spec.TTLSecondsAfterFinished = ptr.To("example.com/other"), ptr.To[int32](0)
		j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon)}}
	})
	c := newCluster(t, Options{}, job)
	x := &expire{client: c.jobs.client, live: c.api, metrics: c.jobs.metrics, options: Options{}.DropIn().withDefaults(), clock: c.clock}
	if _, err := x.Reconcile(t.Context(), requestFor(job)); err != nil || c.count("delete") != 1 {
		t.Errorf("error %v, writes %v", err, c.writes)
	}
}
