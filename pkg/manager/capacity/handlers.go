package capacity

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// NodeHandler updates the Ledger on the events of an informer of Nodes.
func (l *Ledger) NodeHandler() cache.ResourceEventHandler {
	return handler(l.SetNode, func(node *corev1.Node) { l.DeleteNode(node.Name) })
}

// PodHandler updates the Ledger on the events of an informer of Pods.
func (l *Ledger) PodHandler() cache.ResourceEventHandler {
	return handler(l.SetPod, func(pod *corev1.Pod) { l.DeletePod(pod.UID) })
}

func handler[T any](set, remove func(*T)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if typed, ok := object.(*T); ok {
				set(typed)
			}
		},
		UpdateFunc: func(_, object any) {
			if typed, ok := object.(*T); ok {
				set(typed)
			}
		},
		DeleteFunc: func(object any) {
			if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = tombstone.Obj
			}
			if typed, ok := object.(*T); ok {
				remove(typed)
			}
		},
	}
}

// Forget drops all nodes and Pods, before a new informer lists them again: it doesn't say which
// ones were deleted meanwhile. Reservations stay.
func (l *Ledger) Forget() {
	l.update(func() {
		for _, p := range l.pods {
			l.uncount(p)
		}
		clear(l.pods)
		for _, n := range l.sorted {
			l.beforeChange(n)
			n.object, n.allocatable = nil, Resources{}
		}
		l.sorted = nil
		clear(l.nodes)
		l.free = nil
		l.forgetPodsOfJobs()
	})
}

func (l *Ledger) forgetPodsOfJobs() {
	for _, g := range l.groups {
		l.forgetGroup(g)
	}
	for _, j := range l.jobs {
		if j.reservation != nil {
			l.adjust(j.reservation, nil)
		}
	}
}
