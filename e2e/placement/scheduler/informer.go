package main

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// informer has objects without an API server: whoever adds a handler knows them at once.
type informer struct {
	cache.SharedIndexInformer
	handlers []cache.ResourceEventHandler
}

// know makes the factory's informer of a type know some objects. It must be called before anybody
// else asks for that informer.
func know[T runtime.Object](factory informers.SharedInformerFactory, of T, objects []T) error {
	known := factory.InformerFor(of, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
		return &informer{SharedIndexInformer: cache.NewSharedIndexInformer(
			&cache.ListWatch{}, of, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
	})
	for _, o := range objects {
		if err := known.GetIndexer().Add(o); err != nil {
			return err
		}
	}
	return nil
}

func (i *informer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(h, cache.HandlerOptions{})
}

func (i *informer) AddEventHandlerWithResyncPeriod(
	h cache.ResourceEventHandler, _ time.Duration,
) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(h, cache.HandlerOptions{})
}

// AddEventHandlerWithOptions returns what nobody waits for here.
func (i *informer) AddEventHandlerWithOptions(
	h cache.ResourceEventHandler, _ cache.HandlerOptions,
) (cache.ResourceEventHandlerRegistration, error) {
	i.handlers = append(i.handlers, h)
	for _, o := range i.GetStore().List() {
		h.OnAdd(o, true)
	}
	return i.SharedIndexInformer.AddEventHandler(cache.ResourceEventHandlerFuncs{})
}

// set adds an object, or makes another one of it.
func set[T runtime.Object](factory informers.SharedInformerFactory, object T) error {
	i := factory.InformerFor(object, nil).(*informer)
	before, has, err := i.GetStore().Get(object)
	if err == nil {
		err = i.GetStore().Update(object)
	}
	for _, h := range i.handlers {
		if has {
			h.OnUpdate(before, object)
		} else {
			h.OnAdd(object, false)
		}
	}
	return err
}

// HasSynced is for those who wait for the objects.
func (i *informer) HasSynced() bool { return true }
