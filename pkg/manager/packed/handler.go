package packed

import "k8s.io/client-go/tools/cache"

// Handler passes the events of an informer of packed Jobs to a handler of batchv1.Jobs, but for
// updates that change nothing. All handlers share the Jobs, and change nothing in them.
func Handler(to cache.ResourceEventHandler) cache.ResourceEventHandler { return handler{to} }

type handler struct{ to cache.ResourceEventHandler }

func (h handler) OnAdd(object any, isInInitialList bool) {
	if funcs, is := h.to.(cache.ResourceEventHandlerFuncs); is && funcs.AddFunc == nil {
		return
	}
	h.to.OnAdd(unpacked(object), isInInitialList)
}

func (h handler) OnUpdate(before, after any) {
	if !Same(before, after) {
		h.to.OnUpdate(unpacked(before), unpacked(after))
	}
	Replaced(before, after)
}

func (h handler) OnDelete(object any) {
	h.to.OnDelete(unpacked(object))
	Replaced(object, nil)
}

// Same reports whether two packed Jobs are the same version of one: when a watch can't be
// continued, all are listed again, and nearly none has changed.
func Same(before, after any) bool {
	was, ok := before.(*Job)
	is, same := after.(*Job)
	return ok && same && was.resourceVersion() != "" && was.resourceVersion() == is.resourceVersion()
}

// unpacked returns what a handler of batchv1.Jobs is to see of an event's object.
func unpacked(object any) any {
	switch o := object.(type) {
	case *Job:
		return o.Shared()
	case cache.DeletedFinalStateUnknown:
		o.Obj = unpacked(o.Obj)
		return o
	default:
		return object
	}
}
