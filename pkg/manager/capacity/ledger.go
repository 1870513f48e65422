package capacity

import (
	"cmp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Ledger is the account of one worker. Its methods may be called from any goroutine.
type Ledger struct {
	onFreed func()

	mu sync.Mutex
	// nodes by name, and those of them that exist in order of name.
	nodes  map[string]*node
	sorted []*node
	pods   map[types.UID]*pod
	jobs   map[types.NamespacedName]*job
	// groups are the Pods of one Job, by the Job's UID.
	groups map[types.UID]*group
	// queues of claims that wait for room, one per shape, the oldest first.
	queues []*queue
	// nextClaim numbers claims, so that old ones go first.
	nextClaim uint64

	// touched are the nodes changed since the last settle, as they were then.
	touched map[*node]*Node
	// free is nil when a node changed since it was computed.
	free *Capacity
	// notified is set from a call of onFreed to the next call of Free.
	notified bool
}

// New makes an empty Ledger. The callback is called without locks held, and must not block; see the
// package's documentation for when.
func New(onFreed func()) *Ledger {
	return &Ledger{
		onFreed: onFreed,
		nodes:   map[string]*node{},
		pods:    map[types.UID]*pod{},
		jobs:    map[types.NamespacedName]*job{},
		groups:  map[types.UID]*group{},
		touched: map[*node]*Node{},
	}
}

// Free is what is free for a Job now. What is held for the Job itself counts as free, so that it
// doesn't compete with its own reservation; what is held for others isn't free. No Job has the zero
// key. Free changes nothing, and costs little while nothing changes.
func (l *Ledger) Free(job types.NamespacedName) *Capacity {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notified = false
	if l.free == nil {
		nodes := make([]*Node, len(l.sorted))
		for i, n := range l.sorted {
			nodes[i] = n.look()
		}
		l.free = NewCapacity(nodes)
	}
	if j := l.jobs[job]; j != nil && j.claim != nil && len(j.claim.held) > 0 {
		return l.without(j.claim)
	}
	return l.free
}

// without is what is free if nothing is held for a claim.
func (l *Ledger) without(c *claim) *Capacity {
	nodes := slices.Clone(l.free.nodes)
	for n, count := range c.held {
		i, _ := l.position(n.name)
		freed := *nodes[i]
		freed.Free = freed.Free.Add(c.shape.Unit(), count)
		nodes[i] = &freed
	}
	return &Capacity{nodes: nodes}
}

// update makes a change under the lock, sets claims right after it, and tells of room that grew.
func (l *Ledger) update(change func()) {
	l.mu.Lock()
	change()
	grew := l.settle()
	tell := grew && !l.notified
	l.notified = l.notified || grew
	l.mu.Unlock()
	if tell {
		l.onFreed()
	}
}

// touch must precede every change of a node.
func (l *Ledger) touch(n *node) {
	if _, ok := l.touched[n]; !ok {
		l.touched[n] = n.look()
	}
	n.view = nil
	l.free = nil
}

// settle moves claims off the nodes that have no room for them any more, gives room that came free
// to the claims that wait, and says whether there is room left for others.
func (l *Ledger) settle() bool {
	changed := make([]*node, 0, len(l.touched))
	for n := range l.touched {
		changed = append(changed, n)
	}
	slices.SortFunc(changed, func(a, b *node) int { return cmp.Compare(a.name, b.name) })
	for _, n := range changed {
		if n.overfull() || n.object != l.touched[n].Object {
			l.reseat(n)
		}
	}
	for _, n := range changed {
		l.offer(n)
	}
	grew := false
	for n, before := range l.touched {
		grew = grew || n.roomier(before)
		l.tidyNode(n)
	}
	clear(l.touched)
	return grew
}
