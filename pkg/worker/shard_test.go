package worker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/wake"
	"github.com/jobferry/jobferry/pkg/worker/plan"
)

// aShard is a Job of which those indexes are here.
func aShard(indexes, observed string) *batchv1.Job {
	return aJob(func(j *batchv1.Job) {
		j.Spec.CompletionMode, j.Spec.Completions = ptr.To(batchv1.IndexedCompletion), ptr.To[int32](10)
		j.Annotations = map[string]string{v1alpha1.AnnotationIndexes: indexes, v1alpha1.AnnotationIndexesObserved: observed}
	})
}

// assign is the hub changing the shard.
func (c *cluster) assign(indexes string) {
	c.t.Helper()
	job := c.job()
	job.Annotations[v1alpha1.AnnotationIndexes] = indexes
	if err := c.api.Update(c.t.Context(), job); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) observed() string {
	c.t.Helper()
	return c.job().Annotations[v1alpha1.AnnotationIndexesObserved]
}

// cache puts an interceptor between the reconcilers and what they take for their cache.
func (c *cluster) cache(f interceptor.Funcs) {
	c.jobs.client = interceptor.NewClient(c.jobs.client.(client.WithWatch), f)
}

// live does so with their reads of the API server.
func (c *cluster) live(f interceptor.Funcs) { c.jobs.live = interceptor.NewClient(c.api, f) }

// countLive counts them.
func (c *cluster) countLive() *int {
	n := new(int)
	c.live(interceptor.Funcs{
		Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			*n++
			return w.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, w client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			*n++
			return w.List(ctx, list, opts...)
		},
	})
	return n
}

func indexOf(p *corev1.Pod) int { return plan.CompletionIndex(p) }

// A new index is written down before its first Pod is created; one that has run to its end leaves
// with the write that says so.
func TestAShardGrowsAndShrinks(t *testing.T) {
	c := newCluster(t, Options{}, aShard("3", "3"))
	c.mustSync()
	if pods := c.pods(); len(pods) != 1 || indexOf(&pods[0]) != 3 {
		t.Fatalf("Pods %v", pods)
	}
	c.assign("5")
	if after := c.mustSync().RequeueAfter; after != wake.AtOnce || len(c.pods()) != 1 || c.observed() != "3,5" {
		t.Fatalf("requeued after %v, %d Pods, observed %q", after, len(c.pods()), c.observed())
	}
	c.mustSync()
	pods := c.pods()
	if len(pods) != 2 || indexOf(&pods[1]) != 5 {
		t.Fatalf("Pods %v", pods)
	}
	c.end(&pods[0], 0)
	c.mustSync()
	if job := c.job(); c.observed() != "5" || job.Status.CompletedIndexes != "3" {
		t.Errorf("observed %q, status %+v", c.observed(), job.Status)
	}
	c.end(&pods[1], 0)
	c.mustSync()
	sent := len(c.writes)
	if after := c.mustSync().RequeueAfter; after != 0 || len(c.writes) != sent || finished(c.job()) != "" {
		t.Errorf("requeued after %v, writes %v", after, c.writes[sent:])
	}
}

// The annotation is never written over a version of the Job that the plan hasn't seen.
func TestIndexesThatChangeDuringASync(t *testing.T) {
	c := newCluster(t, Options{}, aShard("3", "3,4"))
	c.refuse = func(verb string, _ client.Object) error {
		if verb == "status" {
			c.refuse = nil
			c.assign("4")
		}
		return nil
	}
	if after := c.mustSync().RequeueAfter; after == 0 || c.observed() != "3,4" {
		t.Fatalf("requeued after %v, observed %q", after, c.observed())
	}
	c.mustSync()
	if c.observed() != "3,4" { // 3 has a Pod
		t.Errorf("observed %q", c.observed())
	}
}

// What an earlier process has done is known before the first decision, however late the cache is.
func TestAShardAfterARestart(t *testing.T) {
	late := func(job *batchv1.Job) interceptor.Funcs {
		return interceptor.Funcs{
			Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if out, ok := obj.(*batchv1.Job); ok && job != nil {
					job.DeepCopyInto(out)
					return nil
				}
				return w.Get(ctx, key, obj, opts...)
			},
			List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return nil },
		}
	}
	t.Run("an index that was given back isn't started", func(t *testing.T) {
		c := newCluster(t, Options{}, aShard("3", "3"))
		before := c.job()
		c.assign("")
		c.mustSync()
		for _, p := range c.pods() {
			t.Fatalf("Pod %s", p.Name)
		}
		c.start(Options{})
		c.cache(late(before))
		c.mustSync()
		if c.count("create") > 0 || c.observed() != "" {
			t.Errorf("writes %v, observed %q", c.writes, c.observed())
		}
	})
	t.Run("an index with a Pod isn't given back", func(t *testing.T) {
		c := newCluster(t, Options{}, aShard("3", "3"))
		c.mustSync()
		c.assign("")
		c.start(Options{})
		c.cache(late(nil))
		c.mustSync()
		if c.observed() != "3" || c.job().Status.Active != 1 {
			t.Errorf("observed %q, status %+v", c.observed(), c.job().Status)
		}
	})
	t.Run("an index with a Pod to adopt isn't given back", func(t *testing.T) {
		orphan := aPod("orphan", func(p *corev1.Pod) {
			p.OwnerReferences, p.Finalizers = nil, nil
			p.Annotations = map[string]string{batchv1.JobCompletionIndexAnnotation: "3"}
		})
		c := newCluster(t, Options{}, aShard("", "3"), orphan)
		c.cache(late(nil))
		c.mustSync()
		if c.observed() != "3" || !metav1.IsControlledBy(&c.pods()[0], c.job()) {
			t.Errorf("observed %q, owners %v", c.observed(), c.pods()[0].OwnerReferences)
		}
	})
	for name, edit := range map[string]func(*batchv1.Job){
		"deleted": nil, "replaced": func(j *batchv1.Job) { j.UID = "another" },
	} {
		t.Run("a Job that was "+name+" is left alone", func(t *testing.T) {
			before := aShard("3", "3")
			var objects []client.Object
			if edit != nil {
				next := before.DeepCopy()
				edit(next)
				objects = append(objects, next)
			}
			c := newCluster(t, Options{}, objects...)
			c.cache(late(before))
			if c.mustSync(); len(c.writes) > 0 {
				t.Errorf("writes %v", c.writes)
			}
		})
	}
}

// The API server is read once per Job and process.
func TestAShardIsConfirmedOnce(t *testing.T) {
	c := newCluster(t, Options{}, aShard("3-9", "3-9"))
	reads := c.countLive()
	for range 3 {
		c.mustSync()
	}
	if *reads != 2 {
		t.Errorf("%d reads", *reads)
	}
	c = newCluster(t, Options{}, aShard("3", "3"))
	c.live(interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("no answer")
	}})
	if _, err := c.sync(); err == nil || len(c.writes) > 0 {
		t.Errorf("unconfirmed: %v, writes %v", err, c.writes)
	}
}

// A request without an answer may have created the Pod, or may do so in a while: its index isn't
// given back before that is known. A refusal is an answer.
func TestAPodThatWasCreatedWithoutAnAnswer(t *testing.T) {
	for name, row := range map[string]struct {
		err          error
		created      bool
		early, later string // what is observed at once, and once the request can have no effect any more
		wake         time.Duration
		active       int32
	}{
		// it's known at once
		"created":     {errors.New("connection reset by peer"), true, "3", "3", cacheLag, 1},
		"not created": {apierrors.NewTimeoutError("webhook", 1), false, "3", "", answerTimeout, 0},
		"refused":     {apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "job-x", errors.New("exceeded quota")), false, "", "", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, Options{}, aShard("3", "3"))
			c.cache(interceptor.Funcs{
				Create: func(ctx context.Context, w client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
					if row.created {
						return errors.Join(w.Create(ctx, obj, opts...), row.err)
					}
					return row.err
				},
				List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return nil },
			})
			if _, err := c.sync(); err == nil {
				t.Fatal("no error")
			}
			c.assign("")
			if after := c.mustSync().RequeueAfter; c.observed() != row.early || row.wake != 0 && after != row.wake {
				t.Errorf("at once: observed %q, requeued after %v", c.observed(), after)
			}
			c.clock.Step(answerTimeout)
			c.mustSync()
			if c.observed() != row.later || c.job().Status.Active != row.active {
				t.Errorf("later: observed %q, status %+v", c.observed(), c.job().Status)
			}
		})
	}
}

// Other Jobs give back no index, and need no wake-up for it.
func TestAPlainJobWithoutAnAnswer(t *testing.T) {
	c := newCluster(t, Options{}, aJob())
	c.refuse = func(verb string, _ client.Object) error {
		if verb == "create" {
			return errors.New("connection reset by peer")
		}
		return nil
	}
	for range 3 {
		q := &delays{}
		c.jobs.queue = q
		if _, err := c.sync(); err == nil || len(q.added) > 0 {
			t.Errorf("got %v, requeued after %v", err, q.added)
		}
		c.clock.Step(answerTimeout)
	}
}

// A text that can't be used is reported once, until it changes, and costs nothing further.
func TestAShardWithUnreadableIndexes(t *testing.T) {
	c := newCluster(t, Options{}, aShard("3", "3"))
	c.mustSync()
	c.assign("all")
	for range 3 {
		if after := c.mustSync().RequeueAfter; after > 0 && after < time.Second {
			t.Errorf("requeued after %v", after)
		}
	}
	if n := c.eventCount("InvalidIndexes"); n != 1 || len(c.pods()) != 1 || c.count("delete") > 0 || c.observed() != "3" {
		t.Errorf("%d events, %d Pods, writes %v, observed %q", n, len(c.pods()), c.writes, c.observed())
	}
	c.assign("3,2")
	c.mustSync()
	if n := c.eventCount("InvalidIndexes"); n != 2 {
		t.Errorf("%d events", n)
	}
	c.assign("3,4")
	c.mustSync()
	if c.mustSync(); len(c.pods()) != 2 || c.eventCount("InvalidIndexes") != 2 {
		t.Errorf("%d Pods", len(c.pods()))
	}
}

// An API server whose admission drops the annotation isn't asked again and again.
func TestAnnotationsThatAreDropped(t *testing.T) {
	c := newCluster(t, Options{}, aShard("3,4", "3"))
	c.cache(interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, _ client.Client, _ string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			// the fake one leaves the annotations as they were
			return c.api.Status().Update(ctx, obj, opts...)
		},
	})
	if result, err := c.sync(); err == nil || !strings.Contains(err.Error(), v1alpha1.AnnotationIndexesObserved) || result.RequeueAfter != 0 {
		t.Errorf("got %v, %v", result, err)
	}
}
