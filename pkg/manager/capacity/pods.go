package capacity

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// pod is what the account keeps of one Pod.
type pod struct {
	uid types.UID
	// node it's bound to and takes room of; nil if it isn't bound or has ended.
	node  *node
	takes Resources
	// lasts: it's there to stay, as its containers are restarted for ever.
	lasts bool
	// leaving: it's being deleted, so that its Job will want another.
	leaving bool
	// group of the Job that owns it; nil for others.
	group *group
	// waiting is its Shape while it waits for a node and may have one.
	waiting *Shape
	// claim of its own, if it waits and its Job has no reservation.
	claim *claim

	unschedulable *unschedulable
	// hindrance is why its node can't start it; empty: nothing is known of one.
	hindrance string
}

// unschedulable is what the scheduler says of a Pod that it found no node for.
type unschedulable struct {
	since   time.Time
	message string
}

// SetPod adds or updates a Pod.
func (l *Ledger) SetPod(object *corev1.Pod) {
	l.update(func() {
		old, known := l.pods[object.UID]
		if known && old.unchanged(object) {
			l.report(old, object)
			return
		}
		p := l.read(object)
		if known {
			l.uncount(old)
		}
		l.pods[p.uid] = p
		l.count(p)
		l.report(p, object)
		l.rebalance(old, p)
		if known {
			l.tidyGroup(old.group)
		}
	})
}

// DeletePod removes a Pod.
func (l *Ledger) DeletePod(uid types.UID) {
	l.update(func() {
		old, known := l.pods[uid]
		if !known {
			return
		}
		delete(l.pods, uid)
		l.uncount(old)
		l.rebalance(old, nil)
		l.tidyGroup(old.group)
	})
}

func (l *Ledger) read(object *corev1.Pod) *pod {
	p := &pod{
		uid:     object.UID,
		lasts:   object.Spec.RestartPolicy == corev1.RestartPolicyAlways,
		leaving: object.DeletionTimestamp != nil,
		group:   l.groupOf(object),
	}
	switch {
	case ended(object):
	case object.Spec.NodeName != "":
		p.node = l.node(object.Spec.NodeName)
		p.takes = podRequests(object)
	case !p.leaving && len(object.Spec.SchedulingGates) == 0:
		p.waiting = shapeOfPod(object)
	}
	return p
}

// unchanged says whether the account would be the same with a Pod's new state. What a Pod that
// waits asks for can't change but by dropping a scheduling gate; what one that is bound takes can.
func (p *pod) unchanged(object *corev1.Pod) bool {
	if p.leaving != (object.DeletionTimestamp != nil) || !p.group.owns(object) {
		return false
	}
	switch {
	case p.node != nil:
		return !ended(object) && p.takes.Equal(podRequests(object))
	case p.waiting != nil:
		return !ended(object) && object.Spec.NodeName == ""
	default:
		return ended(object)
	}
}

func ended(object *corev1.Pod) bool {
	return object.Status.Phase == corev1.PodSucceeded || object.Status.Phase == corev1.PodFailed
}

// count puts a Pod on its node and among its Job's.
func (l *Ledger) count(p *pod) {
	if p.group != nil {
		p.group.pods[p.uid] = p
	}
	if p.node == nil {
		return
	}
	l.addToNode(p, 1)
	if c := p.reservation(); c != nil && !p.leaving {
		c.bound.add(p.node, 1)
	}
}

// uncount is the reverse of count, and ends the Pod's own claim.
func (l *Ledger) uncount(p *pod) {
	if p.group != nil {
		delete(p.group.pods, p.uid)
	}
	if p.claim != nil {
		l.drop(p.claim)
		p.claim = nil
	}
	if p.node == nil {
		return
	}
	if c := p.reservation(); c != nil && !p.leaving {
		c.bound.add(p.node, -1)
	}
	l.addToNode(p, -1)
}

func (l *Ledger) addToNode(p *pod, sign int64) {
	n := p.node
	l.touch(n)
	n.bound = n.bound.Add(p.takes, sign)
	if p.lasts {
		n.lasting = n.lasting.Add(p.takes, sign)
	}
	n.pods += int(sign)
}

// rebalance adjusts the claims that a Pod's change concerns: its Job's reservation, or its own.
// Either state may be nil.
func (l *Ledger) rebalance(old, p *pod) {
	was, is := old.reservation(), p.reservation()
	near := p.at()
	switch {
	case near == old.at():
		near = nil
	case near == nil:
		near = old.at()
	}
	l.adjustAny(is, near)
	if was != is {
		l.adjustAny(was, near)
	}
	if is == nil && p != nil {
		l.claimFor(p)
	}
}

func (l *Ledger) adjustAny(c *claim, near *node) {
	if c != nil {
		l.adjust(c, near)
	}
}

// claimFor gives a Pod that waits a claim of its own.
func (l *Ledger) claimFor(p *pod) {
	if p.waiting == nil {
		return
	}
	p.claim = l.newClaim(p.waiting)
	p.claim.want = 1
	l.adjust(p.claim, nil)
}

// at is the node that the Pod takes room of; nil if there is none.
func (p *pod) at() *node {
	if p == nil {
		return nil
	}
	return p.node
}

// reservation is the claim of the Pod's Job; nil if there is none.
func (p *pod) reservation() *claim {
	if p == nil || p.group == nil {
		return nil
	}
	return p.group.job.claim
}
