package capacity

import (
	"cmp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/placement/internal/change"
	"github.com/jobferry/jobferry/pkg/util/objectnames"
)

// Ledger records the capacity of one worker. Its methods may be called from any goroutine.
type Ledger struct {
	onFreed func(change.Change)
	// onStuck is called with a Job when one of its Pods is found to wait.
	onStuck func(job types.NamespacedName)
	// onLeft is called when a change has left something to Continue.
	onLeft func()

	mu sync.Mutex
	// nodes by name, and those of them that exist in order of name.
	nodes  map[string]*node
	sorted []*node
	pods   map[types.UID]*pod
	jobs   map[types.NamespacedName]*job
	// reserved are those with a reservation, by namespace: anybody in the worker may make very many
	// Pods of Jobs without one.
	reserved map[string]map[*job]struct{}
	// groups are the Pods of one Job, by the Job's ID.
	groups map[objectnames.ID]*group
	// queues of the reservations that don't fit yet.
	queues queues
	// offering are the nodes that may have something for those that wait, in the order of their
	// changes, which are counted.
	offering []*node
	changes  uint64
	// crowded are the nodes whose very many reservations are still to be seated again.
	crowded []*node
	// shares of the comparisons of reservations with nodes, until Continue. continues: onLeft was
	// called, as changes have left something.
	shares    shares
	continues bool
	// demands of those that wait; nil when they changed since they were computed.
	demands *Demands
	// eased: some Pods lack room no more. It frees what an autoscaler may add; grows: there is one.
	eased, grows bool
	// nextNumber numbers reservations, so that the oldest is first, and groups.
	nextNumber uint64

	// changed are the nodes changed since the last settle, as they were then.
	changed map[*node]*Node
	// free is nil when a node changed since it was computed.
	free *Capacity
	// notified are the kinds of onFreed's calls since the last call of Free.
	notified change.Kinds
	// reads are the namespaces of the calls of Awaited, until that falls there, and fell are those
	// where it did since the last settle.
	reads change.Set
	fell  []string
}

// New makes an empty Ledger. The callback is called without locks held, and must not block; see the
// package's documentation for when.
func New(onFreed func(change.Change)) *Ledger {
	return &Ledger{
		onFreed:  onFreed,
		onStuck:  func(types.NamespacedName) {},
		onLeft:   func() {},
		nodes:    map[string]*node{},
		pods:     map[types.UID]*pod{},
		jobs:     map[types.NamespacedName]*job{},
		reserved: map[string]map[*job]struct{}{},
		groups:   map[objectnames.ID]*group{},
		changed:  map[*node]*Node{},
		queues:   queues{byNamespace: map[string]*namespaceQueues{}},
		shares:   newShares(),
	}
}

// OnStuck has the callback called with a Job when the scheduler or a kubelet first says of one of
// its Pods that it can't start, or can't yet, unless a Pod of the Job has run, and when the last of
// its Pods has ended. The same holds for it as for that of New. It must be set before the Ledger is
// used.
func (l *Ledger) OnStuck(callback func(job types.NamespacedName)) { l.onStuck = callback }

// OnLeft has the callback called when changes would compare so many reservations with nodes that
// one leaves some: the callee sees to it that Continue is called soon, and not at once. The same
// holds for it as for OnStuck.
func (l *Ledger) OnLeft(callback func()) { l.onLeft = callback }

// Continue goes on with what changes have left. What is still left then has the callback of OnLeft
// called again.
func (l *Ledger) Continue() {
	l.update(func() {
		l.continues = false
		l.shares.refill(l.countDeferred())
	})
}

// Unscheduled are the Jobs of which no Pod has run, and for one of whose Pods the scheduler has no
// node.
func (l *Ledger) Unscheduled() (jobs []types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.groups {
		if !g.ran && slices.ContainsFunc(g.pods, func(p *pod) bool { return p.unschedulable != nil }) {
			jobs = append(jobs, g.job.key)
		}
	}
	return jobs
}

// Free is what is free for a Job now. What is held for the Job itself counts as free, and what its
// own Pods take, so that it doesn't compete with itself; what is held for others isn't free. No Job
// has the zero key. Free changes nothing, and costs little while nothing changes.
func (l *Ledger) Free(job types.NamespacedName) *Capacity {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.freeFor(job)
}

// Growing is what is free for a Job, the nodes that there are, and the demands of others, of one
// moment: a node that comes or goes counts in both of what there is and what may be added, or in
// neither.
func (l *Ledger) Growing(job types.NamespacedName) (free, there *Capacity, demands *Demands) {
	l.mu.Lock()
	defer l.mu.Unlock()
	free = l.freeFor(job)
	return free, l.free, l.demandsFor(job)
}

func (l *Ledger) freeFor(job types.NamespacedName) *Capacity {
	l.notified = 0
	if l.free == nil {
		nodes := make([]*Node, len(l.sorted))
		for i, n := range l.sorted {
			nodes[i] = n.look()
		}
		l.free = NewCapacity(nodes)
	}
	if j := l.jobs[job]; j != nil && j.reservation != nil && len(j.reservation.held)+len(j.reservation.bound) > 0 {
		return l.without(j.reservation)
	}
	return l.free
}

// without is what is free if nothing is held for a reservation, and none of its Pods runs.
func (l *Ledger) without(c *reservation) *Capacity {
	nodes := slices.Clone(l.free.nodes)
	for _, taken := range []slots{c.held, c.bound} {
		for n, count := range taken {
			i, is := l.position(n.name)
			if !is {
				continue // its Pods are known before it
			}
			freed := *nodes[i]
			free := SumOf(freed.Free)
			free.Add(&c.shape.unit, count)
			freed.Free = free.Total()
			nodes[i] = &freed
		}
	}
	return &Capacity{nodes: nodes}
}

// update makes a change under the lock, then moves reservations accordingly, and calls onFreed if
// capacity was freed by that.
func (l *Ledger) update(do func()) {
	l.mu.Lock()
	do()
	freed := l.settle() &^ l.notified
	l.notified |= freed
	fell := l.fell
	l.fell = nil
	isLeft := l.queues.pending.Len()+len(l.offering)+len(l.crowded) > 0 && !l.continues
	l.continues = l.continues || isLeft
	l.mu.Unlock()
	if isLeft {
		l.onLeft()
	}
	if freed != 0 {
		l.onFreed(change.Change{Kinds: freed})
	}
	for _, namespace := range fell {
		l.onFreed(change.Change{Kinds: change.Admission, Namespace: namespace})
	}
}

// beforeChange must be called before every change of a node.
func (l *Ledger) beforeChange(n *node) {
	if _, ok := l.changed[n]; !ok {
		l.changed[n] = n.look()
	}
	n.view = nil
	l.free = nil
}

// settle moves reservations off nodes where they don't fit any more, gives freed capacity to those
// that wait, and returns what may help others.
func (l *Ledger) settle() (freed change.Kinds) {
	changed := make([]*node, 0, len(l.changed))
	for n := range l.changed {
		changed = append(changed, n)
	}
	slices.SortFunc(changed, func(a, b *node) int { return cmp.Compare(a.name, b.name) })
	changed = l.reallocateAll(changed)
	l.findNodes()
	l.offerAll(changed)
	for n, before := range l.changed {
		freed |= n.freedSince(before)
		l.forgetNode(n)
	}
	clear(l.changed)
	if l.eased && l.grows {
		freed |= change.Room
	}
	l.eased = false
	return freed
}
