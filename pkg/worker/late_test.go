package worker

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// lateCache is what the reconcilers take for their cache of Jobs and Pods: it is behind the API
// server by a number of writes.
type lateCache struct {
	c      *cluster
	behind int
	states []state // after each write
	shown  int     // of states
}

type state struct {
	job  *batchv1.Job // nil: none
	pods []corev1.Pod
}

// beLate gives the reconcilers a cache that is behind by that many writes.
func (c *cluster) beLate(behind int) *lateCache {
	l := &lateCache{c: c, behind: behind}
	c.written = l.record
	l.record()
	l.serve()
	return l
}

func (l *lateCache) record() {
	var s state
	var jobs batchv1.JobList
	var pods corev1.PodList
	for _, list := range []client.ObjectList{&jobs, &pods} {
		if err := l.c.api.List(l.c.t.Context(), list); err != nil {
			l.c.t.Fatal(err)
		}
	}
	if s.pods = pods.Items; len(jobs.Items) > 0 {
		s.job = &jobs.Items[0]
	}
	l.states = append(l.states, s)
}

// serve has the reconcilers read the cache.
func (l *lateCache) serve() {
	l.c.cache(interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
			job := l.states[l.shown].job
			if job == nil {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "jobs"}, key.Name)
			}
			job.DeepCopyInto(obj.(*batchv1.Job))
			return nil
		},
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			var o client.ListOptions
			o.ApplyOptions(opts)
			value, _ := o.FieldSelector.RequiresExactMatch(controllerIndex)
			for _, p := range l.states[l.shown].pods {
				if slices.Contains(indexPod(&p), value) {
					list.(*corev1.PodList).Items = append(list.(*corev1.PodList).Items, *p.DeepCopy())
				}
			}
			return nil
		},
	})
}

// advance brings the cache what came before the last writes, and all once nothing is written.
func (l *lateCache) advance() {
	next := len(l.states) - 1
	if l.shown < next-l.behind {
		next -= l.behind
	}
	l.shown = next
}

// takeOver is the start of a new process. Its first list comes from an API server that is further
// behind than the one before, and each look at the cache finds one write more.
func (l *lateCache) takeOver() {
	l.c.t.Helper()
	l.serve()
	l.shown = max(0, l.shown-l.behind)
	t := &takeover{live: l.live(), caches: lateInformers{l}, retry: time.Nanosecond}
	if err := t.prepare(l.c.t.Context()); err != nil {
		l.c.t.Fatal(err)
	}
	for _, k := range []watchedKind{watchedJobs, watchedPods} {
		if err := t.await(l.c.t.Context(), k, l.c.jobs.metrics); err != nil {
			l.c.t.Fatal(err)
		}
	}
}

// live is the API server, with the resourceVersions of its lists.
func (l *lateCache) live() client.Reader {
	return interceptor.NewClient(l.c.api, interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			list.SetResourceVersion(strconv.Itoa(len(l.states)))
			return nil
		},
	})
}

type lateInformers struct{ *lateCache }

func (l lateInformers) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return lateInformer{lateCache: l.lateCache}, nil
}

type lateInformer struct {
	cache.Informer
	*lateCache
}

func (l lateInformer) GetIndexer() toolscache.Indexer { return lateStore{lateCache: l.lateCache} }

func (lateInformer) AddIndexers(toolscache.Indexers) error { return nil }

type lateStore struct {
	toolscache.Indexer
	*lateCache
}

func (l lateStore) LastStoreSyncResourceVersion() string {
	l.shown = min(l.shown+1, len(l.states)-1)
	return strconv.Itoa(l.shown + 1)
}

// What TestKilledAfterAnyWrite says holds for caches that are behind, too, and no Pod is created
// twice. The change of a user may come late.
func TestKilledAfterAnyWriteWithALateCache(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			want := s.run(t, -1, 0)
			for writes := range len(want.writes) {
				got := s.run(t, writes, 3)
				got.compare(t, want, writes)
				if n := got.count("create"); n > want.count("create") && s.midway == nil {
					t.Errorf("killed after %d writes: %d Pods, want %d\n%v", writes, n, want.count("create"), got.writes)
				}
			}
		})
	}
}
