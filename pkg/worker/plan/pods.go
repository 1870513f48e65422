package plan

import (
	"cmp"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/jobferry/jobferry/pkg/mirror/intervals"
)

// noIndex stands for a Pod without a usable completion index.
const noIndex = -1

// pod is one Pod as a sync sees it: the cached object, corrected by the pending writes. The object
// itself is shared and must not be changed.
type pod struct {
	*corev1.Pod
	index   int     // its completion index, or noIndex; gather sets it
	tracked bool    // has the tracking finalizer, and its removal isn't pending
	deleted bool    // being deleted, or its DELETE is pending
	ruled   *ruling // what the policy says of its failure; nil: nobody has asked yet
}

func (p *pod) succeeded() bool   { return p.Status.Phase == corev1.PodSucceeded }
func (p *pod) ended() bool       { return Ended(p.Pod) }
func (p *pod) active() bool      { return !p.ended() && !p.deleted }
func (p *pod) terminating() bool { return !p.ended() && p.deleted }

func (p *pod) ready() bool {
	c := podCondition(p.Pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

func podCondition(p *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == kind {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

// Ended reports whether the Pod's containers run no more, and never will.
func Ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// IsTracked reports whether the Pod has the finalizer.
func IsTracked(p *corev1.Pod, finalizer string) bool {
	return slices.Contains(p.Finalizers, finalizer)
}

// Pending are writes that the API server has accepted but that the cache may not show yet. Without
// them a stale cache would have a Pod created twice, or an untracked one counted again.
type Pending struct {
	Created   []*corev1.Pod             // as the API server returned them
	Adopted   map[types.UID]*corev1.Pod // as of their adoption, while the cache is older
	Deleted   sets.Set[types.UID]       // Pods whose DELETE was accepted
	Untracked sets.Set[types.UID]       // Pods whose tracking finalizer was removed
	// Refused are Pods whose DELETE was refused. If they were untracked for it they stay so, or a
	// refusal that lasts would have the finalizer come and go, and each change bring the next sync.
	Refused sets.Set[types.UID]
}

// classify lays the pending writes over the cached Pods. A large Job has thousands of them in each
// sync, so each costs one place in an array.
func classify(cached []*corev1.Pod, pending Pending, finalizer string) []*pod {
	all := cached
	if len(pending.Created) > 0 {
		all = union(cached, pending.Created)
	}
	pods, out := make([]pod, len(all)), make([]*pod, len(all))
	for i, p := range all {
		p = cmp.Or(pending.Adopted[p.UID], p)
		pods[i] = pod{
			Pod: p, index: noIndex,
			tracked: IsTracked(p, finalizer) && !pending.Untracked.Has(p.UID),
			deleted: p.DeletionTimestamp != nil || pending.Deleted.Has(p.UID),
		}
		out[i] = &pods[i]
	}
	return out
}

// union is both, without those of the second that are in the first.
func union(cached, created []*corev1.Pod) []*corev1.Pod {
	seen := make(sets.Set[types.UID], len(cached))
	for _, p := range cached {
		seen.Insert(p.UID)
	}
	all := slices.Clone(cached)
	for _, p := range created {
		if !seen.Has(p.UID) {
			all = append(all, p)
		}
	}
	return all
}

// CompletionIndex is the index an Indexed Job gave the Pod, or -1. Anybody may have edited it.
func CompletionIndex(p *corev1.Pod) int {
	text, ok := p.Annotations[batchv1.JobCompletionIndexAnnotation]
	if !ok {
		return noIndex
	}
	index, err := strconv.Atoi(text)
	if err != nil || index < 0 || index >= intervals.NoLimit {
		return noIndex
	}
	return index
}

func filter(pods []*pod, keep func(*pod) bool) []*pod {
	var out []*pod
	for _, p := range pods {
		if keep(p) {
			out = append(out, p)
		}
	}
	return out
}

func indexesOf(pods []*pod) intervals.Set {
	indexes := make([]int, 0, len(pods))
	for _, p := range pods {
		if p.index != noIndex {
			indexes = append(indexes, p.index)
		}
	}
	return intervals.Of(indexes...)
}
