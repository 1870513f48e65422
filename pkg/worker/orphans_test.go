package worker

import (
	"context"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

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

// A Pod that isn't what the cache shows keeps its finalizer: it may await its count.
func TestPodThatTheCacheShowsAsItWas(t *testing.T) {
	was := func(edit func(*corev1.Pod)) (*cluster, interceptor.Funcs) {
		c := newCluster(t, Options{}, aJob(), aPod("p", edit))
		before := c.pods()[0]
		now := aPod("p")
		now.ResourceVersion = before.ResourceVersion
		if err := c.api.Update(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		return c, interceptor.Funcs{
			Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if out, ok := obj.(*corev1.Pod); ok {
					before.DeepCopyInto(out)
					return nil
				}
				return w.Get(ctx, key, obj, opts...)
			},
			List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if o := (&client.ListOptions{}).ApplyOptions(opts); o.FieldSelector.String() == controllerIndex+"="+controlledBy("ns", "job-uid") {
					list.(*corev1.PodList).Items = []corev1.Pod{*before.DeepCopy()}
				}
				return nil
			},
		}
	}
	t.Run("without a controller", func(t *testing.T) {
		c, late := was(func(p *corev1.Pod) { p.OwnerReferences = nil })
		c.orphans.client = interceptor.NewClient(c.orphans.client.(client.WithWatch), late)
		if _, err := c.orphans.Reconcile(t.Context(), requestFor(aPod("p"))); err != nil || c.count("patch") != 1 {
			t.Errorf("error %v, writes %v", err, c.writes)
		}
		if p := c.pods()[0]; !plan.IsTracked(&p, v1alpha1.FinalizerJobTracking) {
			t.Error("it was untracked")
		}
	})
	t.Run("with labels that don't match", func(t *testing.T) {
		c, late := was(func(p *corev1.Pod) { p.Labels = nil })
		c.cache(late)
		c.cache(interceptor.Funcs{Get: func(ctx context.Context, _ client.WithWatch, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
			return c.api.Get(ctx, key, obj)
		}})
		if after := c.mustSync().RequeueAfter; after == 0 || c.count("patch") != 1 {
			t.Errorf("requeued after %v, writes %v", after, c.writes)
		}
		if pods := c.pods(); len(pods) != 1 || !plan.IsTracked(&pods[0], v1alpha1.FinalizerJobTracking) || len(pods[0].OwnerReferences) == 0 {
			t.Errorf("it was released, or replaced: %d Pods", len(pods))
		}
	})
}

// A Pod that names a Job, and another UID, has nothing of the Job read but its metadata.
func TestPodThatNamesALargeJob(t *testing.T) {
	c := newCluster(t, Options{}, aJob(func(j *batchv1.Job) { j.UID = "another" }), aPod("p"))
	whole := 0
	c.orphans.live = interceptor.NewClient(c.api, interceptor.Funcs{
		Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, is := obj.(*batchv1.Job); is {
				whole++
			}
			return w.Get(ctx, key, obj, opts...)
		},
	})
	if _, err := c.orphans.Reconcile(t.Context(), requestFor(aPod("p"))); err != nil || whole > 0 || c.count("patch") != 1 {
		t.Errorf("error %v, %d Jobs were read whole, writes %v", err, whole, c.writes)
	}
}
