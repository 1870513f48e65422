package copier

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/manager/carry"
)

// Watch watches the sources of those kinds that some Job needs. It's apart from the manager's
// cache, which of Secrets has only the registrations.
type Watch struct {
	cache informers
	book  *Book
	wake  func(...types.NamespacedName)

	mu      sync.Mutex
	watched map[carry.Kind]bool
}

// informers is what Watch needs of a cache.Cache.
type informers interface {
	GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error)
	Start(ctx context.Context) error
}

// NewWatch returns a watch of the hub that keeps a book up to date, and wakes the Jobs whose
// sources have changed. Add it to the manager; nothing is requested before Follow.
func NewWatch(hub *rest.Config, options cache.Options, book *Book, wake func(...types.NamespacedName)) (*Watch, error) {
	options.DefaultTransform = nameAndVersion
	c, err := cache.New(hub, options)
	if err != nil {
		return nil, fmt.Errorf("cache of what Jobs need: %w", err)
	}
	return &Watch{cache: c, book: book, wake: wake, watched: map[carry.Kind]bool{}}, nil
}

// Start implements manager.Runnable.
func (w *Watch) Start(ctx context.Context) error { return w.cache.Start(ctx) }

// Follow watches a kind from now on. It doesn't wait for what there is.
func (w *Watch) Follow(ctx context.Context, kind carry.Kind) error {
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
	w.wake(w.book.Changed(Source{kind, name}, source.ResourceVersion)...)
}

// nameAndVersion drops all else of an object's metadata.
func nameAndVersion(object any) (any, error) {
	if full, ok := object.(*metav1.PartialObjectMetadata); ok {
		full.ObjectMeta = metav1.ObjectMeta{
			Namespace: full.Namespace, Name: full.Name, UID: full.UID, ResourceVersion: full.ResourceVersion,
		}
	}
	return object, nil
}
