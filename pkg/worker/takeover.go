package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/jobferry/jobferry/pkg/util/revision"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

// takeover holds back the controllers of a process that has just become the leader until its caches
// of Jobs and Pods have all that its predecessor has written. A Pod that was counted and untracked
// would be counted again by a cache that shows it as tracked; one that a cache doesn't show would
// be created again.
//
// An informer's first list doesn't ensure that: an API server may answer it from a watch cache that
// is behind. So takeover asks for the newest resourceVersion by a consistent read, and starts no
// worker before the cache has reached it. It does so before any of the informers is started: their
// first list then has that version, but for an API server that is behind. An informer that was
// started earlier, by another part of the program, reaches it by an event, or by a bookmark within
// about a minute.
type takeover struct {
	live   client.Reader
	caches informers
	probe  *probe        // nil: no built-in is replaced
	retry  time.Duration // between two reads that fail, and two looks at a cache

	lock   sync.Mutex
	newest map[string]string // of each kind, as the consistent read had it
	// podIndex is set by prepare, before any worker is started.
	podIndex
}

// informers are part of a controller-runtime cache.
type informers interface {
	GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error)
}

const (
	// takeoverRetry is short: no Job is synced meanwhile.
	takeoverRetry = 100 * time.Millisecond
	// takeoverReport is how often the log says that a cache is behind.
	takeoverReport = 10 * time.Second
)

func newTakeover(mgr manager.Manager) *takeover {
	return &takeover{
		live: mgr.GetAPIReader(), caches: mgr.GetCache(), retry: takeoverRetry,
	}
}

// watchedKind is a kind whose cache the controllers decide by.
type watchedKind struct {
	name   string
	object client.Object
	list   func() client.ObjectList
}

var (
	watchedJobs = watchedKind{"jobs", &batchv1.Job{}, func() client.ObjectList { return &batchv1.JobList{} }}
	watchedPods = watchedKind{"pods", &corev1.Pod{}, func() client.ObjectList { return &corev1.PodList{} }}
)

// prepare waits until no other Job controller runs, reads the newest versions and indexes Pods,
// once for all controllers. It must be called before the informers are started, so not before the
// process leads.
func (t *takeover) prepare(ctx context.Context) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.podIndex != nil {
		return nil
	}
	if t.probe != nil {
		if err := t.probe.await(ctx); err != nil {
			return err
		}
	}
	for t.newest == nil {
		newest, err := t.readNewest(ctx)
		if err == nil {
			t.newest = newest
			break
		}
		log.FromContext(ctx).Error(err, "The newest versions of Jobs and Pods can't be read, and no Job is synced before")
		if err := wake.Sleep(ctx, 10*t.retry); err != nil {
			return err
		}
	}
	return t.indexPods(ctx)
}

func (t *takeover) indexPods(ctx context.Context) error {
	informer, index, err := t.informer(ctx, watchedPods, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	if err := informer.AddIndexers(podIndexers); err != nil {
		return fmt.Errorf("index Pods: %w", err)
	}
	t.podIndex = indexedPods{index}
	return nil
}

// informer returns the one informer of a kind in the whole cluster, and its store.
func (t *takeover) informer(ctx context.Context, k watchedKind, options ...cache.InformerGetOption) (cache.Informer, toolscache.Indexer, error) {
	informer, err := t.caches.GetInformer(ctx, k.object, options...)
	if err != nil {
		return nil, nil, fmt.Errorf("informer of %s: %w", k.name, err)
	}
	whole, ok := informer.(interface{ GetIndexer() toolscache.Indexer })
	if !ok { // it's made of several
		return nil, nil, fmt.Errorf("the cache of %s can't tell how new it is: use one of the whole cluster", k.name)
	}
	return informer, whole.GetIndexer(), nil
}

func (t *takeover) readNewest(ctx context.Context) (map[string]string, error) {
	newest := map[string]string{}
	for _, k := range []watchedKind{watchedJobs, watchedPods} {
		version, err := revision.Read(ctx, t.live, k.list())
		if err != nil {
			return nil, fmt.Errorf("newest version of %s: %w", k.name, err)
		}
		newest[k.name] = version
	}
	return newest, nil
}

// await returns when the cache of that kind is as new as the consistent read.
func (t *takeover) await(ctx context.Context, k watchedKind, m *metrics) error {
	_, index, err := t.informer(ctx, k)
	if err != nil {
		return err
	}
	defer m.cacheBehind(k.name, 0)
	began, newest := time.Now(), t.newest[k.name]
	for report := takeoverReport; ; {
		has := index.LastStoreSyncResourceVersion()
		if has == "" {
			return errors.New("the cache can't tell how new it is: don't disable client-go's feature gate AtomicFIFO")
		}
		order, err := resourceversion.CompareResourceVersion(has, newest)
		if err != nil {
			return fmt.Errorf("cache of %s: %w", k.name, err)
		}
		if order >= 0 {
			return nil
		}
		behind := time.Since(began)
		m.cacheBehind(k.name, behind)
		if behind >= report {
			report += takeoverReport
			log.FromContext(ctx).Info("No Job is synced: the cache is older than what an earlier process may have written, and its watch brings nothing",
				"resource", k.name, "resourceVersion", has, "newest", newest, "seconds", int(behind.Seconds()))
		}
		if err := wake.Sleep(ctx, t.retry); err != nil {
			return fmt.Errorf("the cache of %s stays at resourceVersion %s, and the API server has %s: %w", k.name, has, newest, err)
		}
	}
}

// heldSource is a source of events whose controller starts no worker before the cache is new
// enough. The controller gives up after its CacheSyncTimeout, which ends the process: another one
// takes over, or its next start opens new connections.
type heldSource struct {
	source.SyncingSource
	*takeover
	kind    watchedKind
	metrics *metrics // of the controller
}

// watch makes the source of a kind's events.
func (t *takeover) watch(mgr manager.Manager, m *metrics, k watchedKind, h handler.EventHandler, p ...predicate.Predicate) source.Source {
	return heldSource{source.Kind(mgr.GetCache(), k.object, h, p...), t, k, m}
}

func (s heldSource) Start(ctx context.Context, q workQueue) error {
	if err := s.prepare(ctx); err != nil {
		return err
	}
	return s.SyncingSource.Start(ctx, q)
}

func (s heldSource) WaitForSync(ctx context.Context) error {
	if err := s.SyncingSource.WaitForSync(ctx); err != nil {
		return err
	}
	return s.await(ctx, s.kind, s.metrics)
}

// String is for logs.
func (s heldSource) String() string { return "caught-up informer of " + s.kind.name }

var _ source.TypedSyncingSource[reconcile.Request] = heldSource{}
