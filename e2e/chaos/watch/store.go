package watch

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/e2e/chaos/checker"
)

// store makes events of what a reflector puts into it. A list after a pause is compared with what
// was there before; an object that was replaced by another one of its name goes before that comes.
// Reflectors call it from one goroutine.
type store struct {
	cluster string
	sink    Sink
	objects map[types.NamespacedName]metav1.Object
}

func newStore(cluster string, sink Sink) *store {
	return &store{cluster: cluster, sink: sink, objects: map[types.NamespacedName]metav1.Object{}}
}

func keyOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// Add implements cache.ReflectorStore.
func (s *store) Add(o any) error { return s.Update(o) }

// Update implements cache.ReflectorStore.
func (s *store) Update(o any) error {
	object, ok := o.(metav1.Object)
	if !ok {
		return fmt.Errorf("%T is no object", o)
	}
	key := keyOf(object)
	before := s.objects[key]
	if before != nil && before.GetUID() != object.GetUID() {
		s.notify(before, true)
		before = nil
	}
	object.SetManagedFields(nil)
	s.objects[key] = object
	if before == nil || before.GetResourceVersion() != object.GetResourceVersion() {
		s.notify(object, false)
	}
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *store) Delete(o any) error {
	object, ok := o.(metav1.Object)
	if !ok {
		return fmt.Errorf("%T is no object", o)
	}
	delete(s.objects, keyOf(object))
	s.notify(object, true)
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *store) Replace(list []any, _ string) error {
	present := map[types.NamespacedName]bool{}
	for _, o := range list {
		if object, ok := o.(metav1.Object); ok {
			present[keyOf(object)] = true
		}
	}
	for key, object := range s.objects {
		if !present[key] {
			delete(s.objects, key)
			s.notify(object, true)
		}
	}
	for _, o := range list {
		if err := s.Update(o); err != nil {
			return err
		}
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (s *store) Resync() error { return nil }

func (s *store) notify(o metav1.Object, gone bool) {
	e := checker.Event{Where: s.cluster, Gone: gone}
	switch object := o.(type) {
	case *batchv1.Job:
		e.Job = object
	case *corev1.Pod:
		e.Pod = object
	case *corev1.Event:
		e.Said = object
	}
	s.sink(e)
}
