package packed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/util/pages"
)

// Cache is a cache.Cache that holds Jobs packed.
type Cache struct{ cache.Cache }

var (
	_       cache.NewCacheFunc = NewCache
	jobKind                    = batchv1.SchemeGroupVersion.WithKind("Job")
)

// errRead is returned for what can't be asked of a cache of packed Jobs.
var errRead = errors.New("jobs are packed: list them by namespace and labels")

// NewCache is pages.NewCache, with Jobs packed after the transform that the options have for them.
func NewCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	byObject := maps.Clone(options.ByObject)
	if byObject == nil {
		byObject = map[client.Object]cache.ByObject{}
	}
	jobs := cache.ByObject{Transform: options.DefaultTransform}
	for object, of := range options.ByObject {
		if _, is := object.(*batchv1.Job); is {
			delete(byObject, object)
			jobs = of
		}
	}
	jobs.Transform = after(jobs.Transform)
	byObject[&batchv1.Job{}], options.ByObject = jobs, byObject
	options.NewInformer = withoutIndexes(options.NewInformer)
	base, err := pages.NewCache(config, options)
	if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	return &Cache{base}, nil
}

// after returns a transform that packs what another one returns; nil: there is no other.
func after(transform toolscache.TransformFunc) toolscache.TransformFunc {
	if transform == nil {
		return Pack
	}
	return func(object any) (any, error) {
		slim, err := transform(object)
		if err != nil {
			return nil, err
		}
		return Pack(slim)
	}
}

type newInformer = func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer

// withoutIndexes has informers made by another function, or client-go's, those of Jobs without
// indexes: the one by namespaces takes 30 bytes for each, and List reads all Jobs.
func withoutIndexes(by newInformer) newInformer {
	if by == nil {
		by = toolscache.NewSharedIndexInformer
	}
	return func(from toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexes toolscache.Indexers) toolscache.SharedIndexInformer {
		if _, is := example.(*batchv1.Job); is {
			indexes = toolscache.Indexers{}
		}
		return by(from, example, resync, indexes)
	}
}

// Get implements client.Reader.
func (c *Cache) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	job, is := into.(*batchv1.Job)
	if !is {
		return c.Cache.Get(ctx, key, into, options...) //nolint:wrapcheck // it's the cache's own
	}
	store, err := c.jobs(ctx)
	if err != nil {
		return err
	}
	object, exists, err := store.GetByKey(key.String())
	if err != nil {
		return fmt.Errorf("job %s: %w", key, err)
	}
	if !exists {
		return apierrors.NewNotFound(batchv1.Resource("jobs"), key.Name)
	}
	held, err := packedJob(object)
	if err != nil {
		return err
	}
	if ptr.Deref((&client.GetOptions{}).ApplyOptions(options).UnsafeDisableDeepCopy, false) {
		*job = *held.Shared()
	} else {
		*job = *held.Unpack()
	}
	return nil
}

// List implements client.Reader. Of the options it takes the namespace and the labels.
func (c *Cache) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	list, is := into.(*batchv1.JobList)
	if !is {
		return c.Cache.List(ctx, into, options...) //nolint:wrapcheck // it's the cache's own
	}
	of := (&client.ListOptions{}).ApplyOptions(options)
	if of.FieldSelector != nil && !of.FieldSelector.Empty() || of.Limit != 0 || of.Continue != "" {
		return errRead
	}
	store, err := c.jobs(ctx)
	if err != nil {
		return err
	}
	list.Items = nil
	for _, object := range store.List() {
		held, err := packedJob(object)
		if err != nil {
			return err
		}
		if of.Namespace != "" && held.Facts().Key.Namespace != of.Namespace {
			continue
		}
		job := held.Unpack()
		if of.LabelSelector == nil || of.LabelSelector.Matches(labels.Set(job.Labels)) {
			list.Items = append(list.Items, *job)
		}
	}
	return nil
}

func packedJob(object any) (*Job, error) {
	held, is := object.(*Job)
	if !is {
		return nil, fmt.Errorf("the cache of Jobs holds a %T", object)
	}
	return held, nil
}

// anyJob tells GetInformer the kind. Nothing else of it is read.
var anyJob = &batchv1.Job{}

// jobs is the store of the informer of Jobs, when it has synced.
func (c *Cache) jobs(ctx context.Context) (toolscache.Store, error) {
	informer, err := c.Cache.GetInformer(ctx, anyJob)
	if err != nil {
		return nil, fmt.Errorf("jobs: %w", err)
	}
	of, is := informer.(interface{ GetStore() toolscache.Store })
	switch {
	case !is:
		return nil, fmt.Errorf("the cache's informer is a %T", informer)
	case !informer.HasSynced():
		return nil, &cache.ErrCacheNotStarted{}
	default:
		return of.GetStore(), nil
	}
}

// GetInformer implements cache.Informers.
func (c *Cache) GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	found, err := c.Cache.GetInformer(ctx, object, options...)
	if _, is := object.(*batchv1.Job); !is || err != nil {
		return found, err //nolint:wrapcheck // it's the cache's own
	}
	return informer{found}, nil
}

// GetInformerForKind implements cache.Informers.
func (c *Cache) GetInformerForKind(ctx context.Context, kind schema.GroupVersionKind, options ...cache.InformerGetOption) (cache.Informer, error) {
	found, err := c.Cache.GetInformerForKind(ctx, kind, options...)
	if kind != jobKind || err != nil {
		return found, err //nolint:wrapcheck // it's the cache's own
	}
	return informer{found}, nil
}

// IndexField implements client.FieldIndexer. There is none over packed Jobs.
func (c *Cache) IndexField(ctx context.Context, object client.Object, field string, of client.IndexerFunc) error {
	if _, is := object.(*batchv1.Job); is {
		return errRead
	}
	return c.Cache.IndexField(ctx, object, field, of) //nolint:wrapcheck // it's the cache's own
}

// informer is one of packed Jobs, whose handlers see batchv1.Jobs.
type informer struct{ cache.Informer }

func (i informer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.Informer.AddEventHandler(Handler(h)) //nolint:wrapcheck // it's the informer's own
}

func (i informer) AddEventHandlerWithResyncPeriod(h toolscache.ResourceEventHandler, every time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.Informer.AddEventHandlerWithResyncPeriod(Handler(h), every) //nolint:wrapcheck // it's the informer's own
}

func (i informer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.Informer.AddEventHandlerWithOptions(Handler(h), options) //nolint:wrapcheck // it's the informer's own
}

func (i informer) AddIndexers(toolscache.Indexers) error { return errRead }
