package rig

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/yaml"
)

// Watched is one object or a set of objects of one resource, to wait for.
type Watched struct {
	lw   cache.ListerWatcher
	what string
}

// Object is one object of a typed client's resource, such as Object(client.BatchV1().RESTClient(), "jobs", ns, name).
// The namespace of a cluster-scoped object is "".
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

// Condition judges an object as it is now; nil stands for a deleted or not yet created one.
type Condition func(runtime.Object) bool

// Exists is the condition of an object that has been created.
func Exists(o runtime.Object) bool { return o != nil }

// Until lists and watches until the condition holds for an object, and returns that one.
// It doesn't poll; a watch that ends is started again, also across a restart of the API server.
// The error of a cancelled context names the last object that was seen.
func (w Watched) Until(ctx context.Context, condition Condition) (runtime.Object, error) {
	var last runtime.Object
	precondition := func(store cache.Store) (bool, error) {
		for _, item := range store.List() {
			last = item.(runtime.Object)
			if condition(last) {
				return true, nil
			}
		}
		return len(store.List()) == 0 && condition(nil), nil
	}
	judge := func(e watch.Event) (bool, error) {
		switch e.Type {
		case watch.Error:
			return false, apierrors.FromObject(e.Object)
		case watch.Deleted:
			return condition(nil), nil
		default:
			last = e.Object
			return condition(e.Object), nil
		}
	}
	_, err := watchtools.UntilWithSync(ctx, w.lw, nil, precondition, judge)
	if err != nil {
		return nil, fmt.Errorf("wait for %s: %w", w.what, errors.Join(context.Cause(ctx), err, lastSeen(last)))
	}
	return last, nil
}

func lastSeen(o runtime.Object) error {
	if o == nil {
		return errors.New("it was never seen")
	}
	o = o.DeepCopyObject()
	if m, err := meta.Accessor(o); err == nil {
		m.SetManagedFields(nil)
	}
	text, err := yaml.Marshal(o)
	return errors.Join(fmt.Errorf("last seen:\n%s", text), err)
}
