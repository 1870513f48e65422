package worker

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/worker/plan"
)

func TestOrphanedFinalizers(t *testing.T) {
	done := func(j *batchv1.Job) {
		j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
	}
	others := func(j *batchv1.Job) { j.Spec.ManagedBy = ptr.To("example.com/other") }
	reborn := func(j *batchv1.Job) { j.UID = "another" }
	for _, row := range []struct {
		name    string
		objects []client.Object
		pod     *corev1.Pod
		want    bool // the finalizer stays
	}{
		{"the Job runs", []client.Object{aJob()}, aPod("p"), true},
		{"the Job is gone", nil, aPod("p"), false},
		{"another Job has its name", []client.Object{aJob(reborn)}, aPod("p"), false},
		{"the Job has finished", []client.Object{aJob(done)}, aPod("p"), false},
		{"the Job is another controller's", []client.Object{aJob(others, done)}, aPod("p"), true},
		{"a Pod without a controller", []client.Object{aJob()}, aPod("p", func(p *corev1.Pod) { p.OwnerReferences = nil }), false},
		{"something else controls it", nil, aPod("p", func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "CloneSet" }), true},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := newCluster(t, Options{}, append(row.objects, row.pod)...)
			if _, err := c.orphans.Reconcile(t.Context(), requestFor(row.pod)); err != nil {
				t.Fatal(err)
			}
			p := c.pods()[0]
			if got := plan.IsTracked(&p, v1alpha1.FinalizerJobTracking); got != row.want {
				t.Errorf("tracked: %v, want %v", got, row.want)
			}
			if !row.want != c.orphans.seemsOrphaned(t.Context(), row.pod) && row.name != "something else controls it" && row.name != "the Job is another controller's" {
				t.Error("its events are judged differently")
			}
		})
	}
}

// The cache of Jobs may be behind: a Job that it doesn't show is asked for.
func TestJobThatTheCacheDoesNotShow(t *testing.T) {
	c := newCluster(t, Options{}, aPod("p"))
	c.orphans.live = newCluster(t, Options{}, aJob()).api
	if _, err := c.orphans.Reconcile(t.Context(), requestFor(aPod("p"))); err != nil {
		t.Fatal(err)
	}
	if len(c.writes) != 0 {
		t.Errorf("released a Pod of a Job that exists: %v", c.writes)
	}
}
