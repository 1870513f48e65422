package worker

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

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
	c.orphans.metadata.live = newCluster(t, Options{}, aJob()).api
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

// Nothing is read of a large Job but its metadata, because of Pods that name it, whatever their UID
// of it is, and of Pods that it's to adopt.
func TestPodsThatNameALargeJob(t *testing.T) {
	noJob := interceptor.Funcs{
		Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, is := obj.(*batchv1.Job); is {
				return errors.New("a Job is read whole")
			}
			return w.Get(ctx, key, obj, opts...)
		},
	}
	for _, job := range []*batchv1.Job{aJob(), aJob(func(j *batchv1.Job) { j.UID = "another" })} {
		c := newCluster(t, Options{}, aPod("p"))
		c.orphans.metadata.live = interceptor.NewClient(newCluster(t, Options{}, job).api, noJob)
		if _, err := c.orphans.Reconcile(t.Context(), requestFor(aPod("p"))); err != nil {
			t.Error(err)
		}
		p := c.pods()[0]
		if is := plan.IsTracked(&p, v1alpha1.FinalizerJobTracking); is != (job.UID == "job-uid") {
			t.Errorf("tracked: %v, and the Job has UID %s", is, job.UID)
		}
	}
	c := newCluster(t, Options{}, aJob(), aPod("p", func(p *corev1.Pod) { p.OwnerReferences, p.Finalizers = nil, nil }))
	live := interceptor.NewClient(c.api, noJob)
	c.jobs.live, c.jobs.metadata.live = live, live
	c.mustSync()
	if p := c.pods()[0]; !metav1.IsControlledBy(&p, c.job()) {
		t.Error("it wasn't adopted")
	}
}

// A tenant's Pods name large Jobs, and his Jobs are to adopt Pods: the metadata of one is read at a
// time, and no other reconcile waits for that. Then it's another tenant's turn.
func TestMetadataOfFewJobsIsReadAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		named := func(namespace, name string) *corev1.Pod {
			return aPod(name, func(p *corev1.Pod) { p.Namespace, p.OwnerReferences[0].UID = namespace, types.UID("of-"+name) })
		}
		pods := []*corev1.Pod{named("ns", "first"), named("ns", "second"), named("ns", "third"), named("other", "theirs")}
		c := newCluster(t, Options{}, aJob(), aPod("bare", func(p *corev1.Pod) { p.OwnerReferences = nil }), pods[0], pods[1], pods[2], pods[3])
		reads, answer := 0, make(chan struct{})
		slow := interceptor.NewClient(c.api, interceptor.Funcs{
			Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
				reads++
				<-answer
				return apierrors.NewNotFound(batchv1.Resource("jobs"), key.Name)
			},
		})
		c.orphans.metadata.live, c.jobs.metadata = slow, c.orphans.metadata
		var waiting sync.WaitGroup
		var done atomic.Int32
		for _, p := range pods {
			waiting.Go(func() {
				if _, err := c.orphans.Reconcile(t.Context(), requestFor(p)); err != nil {
					t.Error(err)
				}
				done.Add(1)
			})
			synctest.Wait()
		}
		waiting.Go(func() {
			if after := c.mustSync().RequeueAfter; after != 0 {
				t.Errorf("the Job is looked at again after %v", after)
			}
			done.Add(1)
		})
		synctest.Wait()
		if reads != 1 || done.Load() != 4 || len(c.writes) > 0 {
			t.Errorf("%d are read, %d reconciles have ended, writes %v", reads, done.Load(), c.writes)
		}
		close(answer)
		waiting.Wait()
		for at := 0; at < len(c.readers); at++ {
			if p := c.readers[at]; p != jobKey {
				_, _ = c.orphans.Reconcile(t.Context(), reconcile.Request{NamespacedName: p})
			} else {
				c.orphans.metadata.turn.Ended(p)
			}
		}
		var got []string
		for _, key := range c.readers {
			got = append(got, key.Name)
		}
		if !slices.Equal(got, []string{"second", "theirs", "third", "job"}) || reads != 4 {
			t.Errorf("the next ones are %v, and %d are read", got, reads)
		}
	})
}

// A Job that the cache shows late, when it has finished, has its Pods looked at again.
func TestAFinishedJobThatTheCacheShowsLate(t *testing.T) {
	done := aJob(func(j *batchv1.Job) {
		j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
	})
	c := newCluster(t, Options{}, done, aPod("p"))
	for _, job := range []*batchv1.Job{aJob(), done} {
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		c.orphans.jobEvents().Create(t.Context(), event.CreateEvent{Object: job}, q)
		if looks := q.Len(); looks != 0 != (job == done) {
			t.Errorf("%d Pods are looked at", looks)
		}
	}
}
