package checker

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// correction is for how long what the hub shows of a Pod may be wrong, when no fault lasts.
const correction = 30 * time.Second

// shown is what the hub shows of a Job's Pods.
type shown struct {
	pods map[string]*corev1.Pod // by name
	// since is when what is shown of a Pod became wrong; reported are those that were for too long.
	since    map[string]time.Duration
	reported map[string]bool
}

func newShown() shown {
	return shown{pods: map[string]*corev1.Pod{}, since: map[string]time.Duration{}, reported: map[string]bool{}}
}

// observeShown takes in a Pod of the hub.
func (c *Checker) observeShown(r *record, e Event) {
	if e.Gone {
		delete(r.shown.pods, e.Pod.Name)
		r.noteChange(e.At, e.Where, "Pod "+e.Pod.Name, "is gone")
		return
	}
	r.shown.pods[e.Pod.Name] = e.Pod
	r.noteChange(e.At, e.Where, "Pod "+e.Pod.Name, string(e.Pod.Status.Phase))
}

// checkShown reports what has been wrong for too long.
func (c *Checker) checkShown(at time.Duration, r *record) {
	wrong := c.wronglyShown(r)
	maps.DeleteFunc(r.shown.since, func(name string, _ time.Duration) bool { return wrong[name] == "" })
	for _, name := range slices.Sorted(maps.Keys(wrong)) {
		if _, is := r.shown.since[name]; !is || c.isTroubled(at) {
			r.shown.since[name] = at
		}
		if at-r.shown.since[name] > correction && !r.shown.reported[name] {
			r.shown.reported[name] = true
			c.violate(at, Shown, r, "Pod %s: %s", name, wrong[name])
		}
	}
}

// WronglyShown is how many Pods the hub shows otherwise than they are, at the moment.
func (c *Checker) WronglyShown() int {
	n := 0
	for _, r := range c.records {
		n += len(c.wronglyShown(r))
	}
	return n
}

// wronglyShown says of each Pod what is wrong on the hub.
func (c *Checker) wronglyShown(r *record) map[string]string {
	wrong := map[string]string{}
	for name, is := range r.shown.pods {
		if text := r.wrongWith(is); text != "" {
			wrong[name] = text
		}
	}
	for _, p := range r.pods {
		if r.shown.pods[p.name] == nil && c.options.Shown(p.namespace) && r.isToBeShown(p) {
			wrong[p.name] = fmt.Sprintf("is %s in %s, and isn't shown", p.phase, p.where)
		}
	}
	return wrong
}

// wrongWith says what is wrong with a Pod of the hub; empty: nothing.
func (r *record) wrongWith(is *corev1.Pod) string {
	owner := metav1.GetControllerOf(is)
	if r.hub == nil || owner == nil || owner.UID != r.hub.UID {
		return "its Job is gone"
	}
	p := r.pods[types.UID(is.Annotations[v1alpha1.AnnotationPodUID])]
	switch {
	case p == nil || p.gone:
		return "it isn't in its worker"
	case p.where != is.Annotations[v1alpha1.AnnotationCluster]:
		return fmt.Sprintf("it's in %s, and is shown in %s", p.where, is.Annotations[v1alpha1.AnnotationCluster])
	case p.phase != is.Status.Phase:
		return fmt.Sprintf("it's %s, and is shown as %s", p.phase, is.Status.Phase)
	}
	return ""
}

// isToBeShown: the Pod is the Job's, where that is placed, and hasn't ended. One that has ended and
// that somebody removes from the hub doesn't come again.
func (r *record) isToBeShown(p *pod) bool {
	if r.hub == nil || r.hub.DeletionTimestamp != nil || r.mirrors[p.owner] != r.hub.UID {
		return false
	}
	_, home := r.homes[p.where]
	return home && !p.gone && !p.stopping && (p.phase == corev1.PodPending || p.phase == corev1.PodRunning)
}

// isTroubled reports whether a fault lasts anywhere.
func (c *Checker) isTroubled(at time.Duration) bool {
	return slices.ContainsFunc(c.trouble, func(t Trouble) bool { return t.From <= at && t.To >= at })
}
