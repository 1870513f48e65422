package worker

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/jobferry/jobferry/pkg/util/wake"
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
	behind := wake.In(DefaultOptions().SyncBatchPeriod)
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
		{"the TTL was raised a moment ago", aJob(ended(30), ttl(30)), aJob(ended(30), ttl(90)), behind, false},
		{"the Job was made anew", aJob(ended(30), ttl(30)), aJob(ttl(30), func(j *batchv1.Job) { j.UID = "new" }), behind, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := newCluster(t, Options{}, row.cached)
			cached := &batchv1.Job{}
			if err := c.api.Get(t.Context(), jobKey, cached); err != nil {
				t.Fatal(err)
			}
			if row.live != nil {
				row.live.ResourceVersion = cached.ResourceVersion
				if err := c.api.Update(t.Context(), row.live); err != nil {
					t.Fatal(err)
				}
			}
			reads := 0
			behind := interceptor.NewClient(c.api, interceptor.Funcs{
				Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
					reads++
					cached.DeepCopyInto(into.(*batchv1.Job))
					return nil
				},
			})
			m, err := newMetrics(prometheus.NewRegistry(), "")
			if err != nil {
				t.Fatal(err)
			}
			x := &expire{client: behind, metrics: m, options: DefaultOptions(), clock: c.clock}
			result, err := x.Reconcile(t.Context(), requestFor(row.cached))
			if err != nil {
				t.Fatal(err)
			}
			err = c.api.Get(t.Context(), jobKey, &batchv1.Job{})
			if result.RequeueAfter != row.wait || apierrors.IsNotFound(err) != row.deleted || reads != 1 {
				t.Errorf("waits %v, %d reads, the Job: %v", result.RequeueAfter, reads, err)
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
	x := &expire{client: c.jobs.client, metrics: c.jobs.metrics, options: Options{}.DropIn().withDefaults(), clock: c.clock}
	if _, err := x.Reconcile(t.Context(), requestFor(job)); err != nil || c.count("delete") != 1 {
		t.Errorf("error %v, writes %v", err, c.writes)
	}
}
