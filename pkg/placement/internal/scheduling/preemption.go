package scheduling

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

// preempting is the answer for a Job that doesn't fit beside what runs, if it may preempt Pods.
//
// The scheduler removes what keeps one Pod away from one node, and keeps of that what fits beside
// it after all. It removes nothing from other nodes. So which of the Pods will go isn't known: what
// they take of their nodes is free, and the Job fits now only if it does both with them and without
// them. PodDisruptionBudgets are only preferred. Ports, claims and volumes of the Pods are taken to
// stay in use, and a gang is taken to preempt nothing.
func (a *admitted) preempting(s *Snapshot, wanted int64, beside Answer) Answer {
	priority, may := s.Admission.preemptor(a.spec)
	if !may || a.gang > 1 {
		return beside
	}
	pods, noPods, changed := s.from(priority, a.work)
	if !changed {
		return beside
	}
	with, without := a.judge(pods, wanted), a.judge(noPods, wanted)
	best, worst := with, without
	if worst.Verdict < best.Verdict || worst.Verdict == best.Verdict && worst.Now > best.Now {
		best, worst = worst, best
	}
	switch {
	case worst.Verdict == FitsNow:
		worst.Preempts = true
		return worst
	case best.Verdict < beside.Verdict, len(a.affinity)+len(a.antiAffinity)+len(a.spread)+len(s.guarded) > 0:
		beside.Verdict = FitsLater // it may need that some of them go and others don't
	}
	return beside
}

// preemptor is the priority that the API server gives a Pod, and whether the Pod may preempt
// others.
func (a *Admission) preemptor(spec *corev1.PodSpec) (priority int32, may bool) {
	if a == nil || a.PriorityClasses == nil {
		return 0, false
	}
	class := a.PriorityClasses[spec.PriorityClassName]
	if spec.PriorityClassName == "" {
		class = a.defaultPriority()
	}
	if class == nil {
		return 0, true
	}
	return class.Value, ptr.Deref(class.PreemptionPolicy, corev1.PreemptLowerPriority) != corev1.PreemptNever
}

// defaultPriority is the class of Pods that name none; nil if there is none. Of several, the API
// server takes the one with the lowest value.
func (a *Admission) defaultPriority() *schedulingv1.PriorityClass {
	var lowest *schedulingv1.PriorityClass
	for _, class := range a.PriorityClasses {
		if class.GlobalDefault && (lowest == nil || class.Value < lowest.Value) {
			lowest = class
		}
	}
	return lowest
}

// from frees what Pods of a lower priority take, with the Pods and without them; false: there is
// none.
func (s *Snapshot) from(priority int32, b *budget) (with, without *Snapshot, changed bool) {
	with, without = s.copyOf(), s.copyOf()
	for i, n := range s.Nodes {
		freed, kept := n.from(priority, b)
		if len(kept) == len(n.Pods) {
			continue
		}
		changed = true
		with.Nodes[i], without.Nodes[i] = &Node{freed, n.podsOn}, &Node{freed, n.only(kept)}
	}
	with.findGuards()
	without.findGuards()
	return with, without, changed
}

// copyOf is the Snapshot without its guards.
func (s *Snapshot) copyOf() *Snapshot {
	c := *s
	c.Nodes, c.guarded, c.sums = slices.Clone(s.Nodes), nil, &sums{}
	return &c
}

// from is the node when Pods of a lower priority take nothing, and the others.
func (n *Node) from(priority int32, b *budget) (freed *capacity.Node, kept []*Pod) {
	free, idle := capacity.SumOf(n.Free), capacity.SumOf(n.Idle)
	for _, p := range n.Pods {
		b.spend(takeWork+takingWork*len(p.Requests.Others), requestsField)
		if p.Priority >= priority {
			kept = append(kept, p)
			continue
		}
		free.Add(&p.Requests, 1)
		if p.Lasts {
			idle.Add(&p.Requests, 1)
		}
	}
	node := *n.Node
	node.Free, node.Idle = free.Total(), idle.Total()
	return &node, kept
}

// only counts some of the Pods.
func (on *podsOn) only(pods []*Pod) *podsOn {
	entries := map[kind]*kindEntry{}
	for i := range on.kinds {
		entries[on.kinds[i].of.kind] = on.kinds[i].of
	}
	return podsOf(pods, entries)
}
