package copier

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/manager/carry"
	"github.com/jobferry/jobferry/pkg/util/pages"
)

// Watch watches the sources of the kinds that some Job needs. It has a cache of its own: the
// manager's cache has only the Secrets that are registrations.
type Watch struct {
	cache   informers
	tracker *Tracker
	enqueue Enqueue

	mu      sync.Mutex
	watched map[carry.Kind]bool
}

// Enqueue has Jobs reconciled in some time.
type Enqueue func(after time.Duration, jobs ...types.NamespacedName)

// informers is what Watch needs of a cache.Cache.
type informers interface {
	GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error)
	Start(ctx context.Context) error
}

// NewWatch returns a watch of the hub that keeps a tracker up to date, and enqueues the Jobs whose
// sources have changed. Add it to the manager. It requests nothing before Add.
func NewWatch(hub *rest.Config, options cache.Options, tracker *Tracker, enqueue Enqueue) (*Watch, error) {
	options.DefaultTransform = nameAndVersion
	c, err := pages.NewCache(hub, options)
	if err != nil {
		return nil, fmt.Errorf("cache of what Jobs need: %w", err)
	}
	return &Watch{cache: c, tracker: tracker, enqueue: enqueue, watched: map[carry.Kind]bool{}}, nil
}

// Start implements manager.Runnable.
func (w *Watch) Start(ctx context.Context) error { return w.cache.Start(ctx) }

// Add watches a kind from now on. It doesn't wait for the first list.
func (w *Watch) Add(ctx context.Context, kind carry.Kind) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watched[kind] {
		return nil
	}
	example := &metav1.PartialObjectMetadata{}
	example.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(string(kind)))
	informer, err := w.cache.GetInformer(ctx, example, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch of %s: %w", kind, err)
	}
	changed := func(object any) { w.changed(kind, object) }
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    changed,
		UpdateFunc: func(_, object any) { changed(object) },
		// A source that is deleted leaves its copies as they are.
	})
	if err != nil {
		return fmt.Errorf("watch of %s: %w", kind, err)
	}
	w.watched[kind] = true
	return nil
}

func (w *Watch) changed(kind carry.Kind, object any) {
	source, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return
	}
	name := types.NamespacedName{Namespace: source.Namespace, Name: source.Name}
	for job, after := range w.tracker.SourceChanged(Source{kind, name}, source.ResourceVersion) {
		w.enqueue(after, job)
	}
}

// nameAndVersion drops the rest of an object's metadata.
func nameAndVersion(object any) (any, error) {
	if full, ok := object.(*metav1.PartialObjectMetadata); ok {
		full.ObjectMeta = metav1.ObjectMeta{
			Namespace: full.Namespace, Name: full.Name, UID: full.UID, ResourceVersion: full.ResourceVersion,
		}
	}
	return object, nil
}
