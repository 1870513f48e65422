package pods

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/pods/report"
	"github.com/jobferry/jobferry/pkg/util/shares"
)

// maxSwept is how many Pods of a worker a sweep has looked at. Workers and tenants may have any
// number that aren't as they should be, and a look may unpack a Job.
const maxSwept = 1000

// sweep has Pods looked at whose shadow isn't as it should be.
func (r *reconciler) sweep() {
	if !r.namespacesSeen() {
		return
	}
	due := duePods{}
	for _, w := range r.registry.List() {
		w.Reports().Each(func(name types.NamespacedName, p *report.Pod) {
			if r.differs(w, name, p) {
				due.add(w.Name(), name)
			}
		})
	}
	r.shadows.all(func(s *shadow) {
		w, is := r.registry.Get(s.worker.Value())
		if is && s.isShadow() {
			_, is = w.Reports().Get(s.key)
		}
		if (!is || s.deleting) && !s.isKept() {
			due.add(s.worker.Value(), s.key)
		}
	})
	var names []types.NamespacedName
	names, r.cursors = due.choose(r.cursors)
	r.enqueue(names...)
}

// differs reports whether a worker's Pod isn't shown as it is.
func (r *reconciler) differs(w *clusters.Worker, name types.NamespacedName, p *report.Pod) bool {
	s := r.shadows.on(w.Name(), name)
	switch {
	case s == nil:
		return !p.Past && r.Shown(name.Namespace)
	case s.isKept():
		return false
	default:
		return s.digest != p.Digest || s.deleting || s.phase.Value() != string(p.Phase) || s.ready != p.Ready || !r.Shown(name.Namespace) || !w.Synced()
	}
}

// duePods has the names of the Pods to look at, by worker and namespace.
type duePods map[string]map[string][]string

func (d duePods) add(worker string, pod types.NamespacedName) {
	of := d[worker]
	if of == nil {
		of = map[string][]string{}
		d[worker] = of
	}
	of[pod.Namespace] = append(of[pod.Namespace], pod.Name)
}

// cursors has the name of the Pod after which the next sweep goes on, of each worker and namespace,
// and of each worker the namespace.
type cursors map[cursorKey]string

// cursorKey of a worker's namespaces has no namespace.
type cursorKey struct{ worker, namespace string }

// choose returns maxSwept of each worker's Pods, of which each namespace has a share. Where the
// last sweep has stopped, this one goes on.
func (d duePods) choose(last cursors) (chosen []types.NamespacedName, next cursors) {
	next = cursors{}
	for worker, of := range d {
		for namespace, names := range of {
			slices.Sort(names)
			of[namespace] = shares.After(slices.Compact(names), last[cursorKey{worker, namespace}])
		}
		all := cursorKey{worker: worker}
		parts, stopped := shares.Of(of, last[all], maxSwept)
		next[all] = stopped
		for namespace := range of {
			at := cursorKey{worker, namespace}
			next[at] = last[at]
			for _, name := range parts[namespace] {
				next[at] = name
				chosen = append(chosen, types.NamespacedName{Namespace: namespace, Name: name})
			}
		}
	}
	return chosen, next
}
