package capacity

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// pod is the record of one Pod.
type pod struct {
	uid types.UID
	// node it's bound to; nil if it isn't bound or has ended.
	node  *node
	takes Resources
	// lasts: it doesn't end by itself, as its containers are restarted for ever.
	lasts bool
	// leaving: it's being deleted, so that its Job will want another.
	leaving bool
	// live: it hasn't ended, and it isn't one that is deleted before it had a node.
	live bool
	// group of the Job that owns it, and where it is among the Pods of that; nil for others.
	group    *group
	position int
	// waiting is its Shape while it waits for a node and may have one.
	waiting   *Shape
	namespace string
	// own reservation, if it waits and its Job has none.
	own *reservation

	unschedulable *unschedulable
	// unbound is why a live Pod has no node, of which the scheduler hasn't said that it found none.
	unbound string
	// startError is why its node can't start it; empty: nothing is known of one.
	startError string
	// preparing: its node has begun with it. ran: a container of it has run.
	preparing, ran bool
}

// unschedulable is what the scheduler says of a Pod that it found no node for.
type unschedulable struct {
	since   time.Time
	message string
}

// SetPod adds or updates a Pod.
func (l *Ledger) SetPod(object *corev1.Pod) {
	waiting := waitingShape(object) // without the lock: it takes a while
	var stuck *job                  // is it since now
	l.update(func() {
		old, known := l.pods[object.UID]
		wasStuck, couldntStart := old.isStuck(), old.cantStart()
		p := old
		if known && old.unchanged(object) {
			l.report(p, object)
		} else {
			p = l.replace(old, object, waiting)
		}
		switch {
		case old.wasLast():
			stuck = old.group.job
		// Once one ran, that a node prepares another is nothing to look at.
		case !wasStuck && p.isStuck() && !p.group.ran || !couldntStart && p.cantStart():
			stuck = p.group.job
		}
	})
	if stuck != nil {
		l.onStuck(stuck.key)
	}
}

// replace puts a Pod in the place of what was known of it; nil: nothing was.
func (l *Ledger) replace(old *pod, object *corev1.Pod, waiting *Shape) *pod {
	p := l.read(object, waiting)
	if old != nil {
		l.uncount(old)
	}
	l.pods[p.uid] = p
	l.count(p)
	l.report(p, object)
	l.rebalance(old, p)
	if old == nil && p.group != nil {
		l.fewerAwaited(p.group.job)
	}
	if old != nil {
		l.forgetGroup(old.group)
	}
	return p
}

// wasLast reports whether the Pod, which has been uncounted, was the last live one of its Job: the
// Job controller is to count its end now.
func (p *pod) wasLast() bool { return p != nil && p.live && p.group != nil && p.group.live == 0 }

// isStuck reports whether somebody said that the Pod can't start, or can't yet.
func (p *pod) isStuck() bool { return p.cantStart() || p != nil && p.preparing }

// cantStart reports whether somebody said that the Pod can't start.
func (p *pod) cantStart() bool { return p != nil && (p.unschedulable != nil || p.startError != "") }

// DeletePod removes a Pod.
func (l *Ledger) DeletePod(uid types.UID) {
	var ended *job // has no live Pod since now
	l.update(func() {
		old, known := l.pods[uid]
		if !known {
			return
		}
		delete(l.pods, uid)
		l.uncount(old)
		l.rebalance(old, nil)
		if old.wasLast() {
			ended = old.group.job
		}
		l.forgetGroup(old.group)
	})
	if ended != nil {
		l.onStuck(ended.key)
	}
}

// waitingShape is the Shape of a Pod while it waits for a node and may have one, otherwise nil.
func waitingShape(object *corev1.Pod) *Shape {
	if Ended(object) || object.Spec.NodeName != "" || object.DeletionTimestamp != nil || len(object.Spec.SchedulingGates) > 0 {
		return nil
	}
	return shapeOfPod(object)
}

func (l *Ledger) read(object *corev1.Pod, waiting *Shape) *pod {
	p := &pod{
		uid:       object.UID,
		namespace: object.Namespace,
		lasts:     object.Spec.RestartPolicy == corev1.RestartPolicyAlways,
		leaving:   object.DeletionTimestamp != nil,
		live:      isLive(object),
		group:     l.groupOf(object),
		waiting:   waiting,
	}
	if !Ended(object) && object.Spec.NodeName != "" {
		p.node = l.node(object.Spec.NodeName)
		p.takes = PodRequests(object)
	}
	return p
}

// unchanged reports whether a Pod's new state makes no difference here. What a Pod that waits asks
// for changes only when a scheduling gate is removed; what a bound Pod takes can change.
func (p *pod) unchanged(object *corev1.Pod) bool {
	if p.leaving != (object.DeletionTimestamp != nil) || p.live != isLive(object) || !p.group.owns(object) {
		return false
	}
	switch {
	case p.node != nil:
		return !Ended(object) && p.takes.Equal(PodRequests(object))
	case p.waiting != nil:
		return !Ended(object) && object.Spec.NodeName == ""
	default:
		return Ended(object)
	}
}

// Ended reports whether all containers of a Pod have ended for good.
func Ended(object *corev1.Pod) bool {
	return object.Status.Phase == corev1.PodSucceeded || object.Status.Phase == corev1.PodFailed
}

func isLive(object *corev1.Pod) bool {
	return !Ended(object) && (object.Spec.NodeName != "" || object.DeletionTimestamp == nil)
}

// count puts a Pod on its node and among its Job's.
func (l *Ledger) count(p *pod) {
	if p.group != nil {
		p.group.add(p)
	}
	if p.node == nil {
		return
	}
	l.addToNode(p, 1)
	if c := p.jobReservation(); c != nil && !p.leaving {
		c.bound.add(p.node, 1)
	}
}

// uncount is the reverse of count, and ends the Pod's own reservation.
func (l *Ledger) uncount(p *pod) {
	if p.group != nil {
		p.group.remove(p)
	}
	if p.own != nil {
		l.drop(p.own)
		p.own = nil
	}
	if p.node == nil {
		return
	}
	if c := p.jobReservation(); c != nil && !p.leaving {
		c.bound.add(p.node, -1)
	}
	l.addToNode(p, -1)
}

func (l *Ledger) addToNode(p *pod, sign int64) {
	n := p.node
	l.beforeChange(n)
	n.bound.change(&p.takes, sign)
	if p.lasts {
		n.lasting.change(&p.takes, sign)
	}
	n.pods += int(sign)
}

// rebalance adjusts the reservations that a Pod's change concerns: its Job's, or its own. Either
// state may be nil.
func (l *Ledger) rebalance(old, p *pod) {
	was, is := old.jobReservation(), p.jobReservation()
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
		l.reserveFor(p)
	}
}

func (l *Ledger) adjustAny(c *reservation, near *node) {
	if c != nil {
		l.adjust(c, near)
	}
}

// reserveFor makes a reservation for a Pod that waits. There may be very many: findNodes finds a
// node for it.
func (l *Ledger) reserveFor(p *pod) {
	if p.waiting == nil {
		return
	}
	p.own = l.newReservation(p.namespace, p.waiting)
	p.own.want, p.own.unheld = 1, 1
	l.setPending(p.own)
}

// at is the node that the Pod is bound to; nil if there is none.
func (p *pod) at() *node {
	if p == nil {
		return nil
	}
	return p.node
}

// jobReservation is the reservation of the Pod's Job; nil if there is none.
func (p *pod) jobReservation() *reservation {
	if p == nil || p.group == nil {
		return nil
	}
	return p.group.job.reservation
}
