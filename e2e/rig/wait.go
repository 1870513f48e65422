package rig

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"
)

// Watched is one object or a set of objects of one resource, to wait for.
type Watched struct {
	lw   cache.ListerWatcher
	what string
}

// Object is one object of a typed client's resource, such as Object(client.BatchV1().RESTClient(),
// "jobs", ns, name). The namespace of a cluster-scoped object is "".
func Object(client rest.Interface, resource, namespace, name string) Watched {
	selector := fields.OneTermEqualSelector("metadata.name", name)
	return Watched{
		lw:   cache.NewListWatchFromClient(client, resource, namespace, selector),
		what: fmt.Sprintf("%s %s/%s", resource, namespace, name),
	}
}

// Objects are all objects of a typed client's resource in a namespace, or in all if it is "".
func Objects(client rest.Interface, resource, namespace string) Watched {
	return Watched{
		lw:   cache.NewListWatchFromClient(client, resource, namespace, fields.Everything()),
		what: fmt.Sprintf("%s in %q", resource, namespace),
	}
}

// Condition judges an object as it is now. nil stands for an object that was deleted, or for none
// at all. It is called for one object at a time.
type Condition func(runtime.Object) bool

// Exists is the condition of an object that has been created.
func Exists(o runtime.Object) bool { return o != nil }

// Gone is the condition of an object that doesn't exist.
func Gone(o runtime.Object) bool { return o == nil }

// Until lists and watches until the condition holds for an object, and returns that one (nil if it
// holds for nil). It doesn't poll; a watch that ends is started again, also across a restart of the
// API server. The error of an ended context shows the last object that was seen.
func (w Watched) Until(ctx context.Context, condition Condition) (runtime.Object, error) {
	parent := ctx
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	o := &observer{condition: condition, held: make(chan struct{})}
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: w.lw,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { o.observe(object.(runtime.Object)) },
			UpdateFunc: func(_, object any) { o.observe(object.(runtime.Object)) },
			DeleteFunc: func(any) { o.observe(nil) },
		},
	})
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	running.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) && len(store.List()) == 0 {
			o.observe(nil)
		}
	})
	select {
	case <-o.held:
	case <-ctx.Done():
	}
	stop()
	running.Wait()
	return o.result(parent, w.what)
}

// observer judges what an informer sees until its condition holds.
type observer struct {
	condition Condition

	mu     sync.Mutex
	done   bool
	object runtime.Object // for which the condition holds; or the last that was seen
	held   chan struct{}
}

func (o *observer) observe(object runtime.Object) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.done {
		return
	}
	o.object = object
	if o.condition(object) {
		o.done = true
		close(o.held)
	}
}

func (o *observer) result(ctx context.Context, what string) (runtime.Object, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.done {
		return o.object, nil
	}
	return nil, fmt.Errorf("wait for %s: %w", what, errors.Join(context.Cause(ctx), describe(o.object)))
}

func describe(o runtime.Object) error {
	if o == nil {
		return errors.New("there is none")
	}
	o = o.DeepCopyObject()
	if m, err := meta.Accessor(o); err == nil {
		m.SetManagedFields(nil)
	}
	text, err := yaml.Marshal(o)
	return errors.Join(fmt.Errorf("last seen:\n%s", text), err)
}
