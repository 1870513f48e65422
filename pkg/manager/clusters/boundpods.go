package clusters

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/jobferry/jobferry/pkg/manager/placement/scheduling"
)

// withBound keeps the bound Pods, and then calls the ledger's handler: who is told of freed capacity
// sees the Pods as they are.
type withBound struct {
	cache.ResourceEventHandler
	bound *scheduling.Pods
}

// OnAdd handles an addition.
func (w withBound) OnAdd(object any, initial bool) {
	w.set(object)
	w.ResourceEventHandler.OnAdd(object, initial)
}

// OnUpdate handles an update.
func (w withBound) OnUpdate(before, after any) {
	w.set(after)
	w.ResourceEventHandler.OnUpdate(before, after)
}

// OnDelete handles a deletion.
func (w withBound) OnDelete(object any) {
	last := object
	if tombstone, is := object.(cache.DeletedFinalStateUnknown); is {
		last = tombstone.Obj
	}
	if pod, is := last.(*corev1.Pod); is {
		w.bound.Delete(pod.UID)
	}
	w.ResourceEventHandler.OnDelete(object)
}

func (w withBound) set(object any) {
	if pod, is := object.(*corev1.Pod); is {
		w.bound.Set(pod)
	}
}
