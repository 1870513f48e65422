package capacity

import (
	"cmp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/placement"
)

// Ledger is the account of one worker. Its methods may be called from any goroutine.
type Ledger struct {
	onMoreRoom func()

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
	touched map[*node]*placement.Node
	// snapshot is nil when a node changed since it was taken.
	snapshot *placement.Capacity
	// notified is set from a call of onMoreRoom to the next Snapshot.
	notified bool
}

// New makes an empty Ledger. The callback is called without locks held, and must not block; see the
// package's documentation for when.
func New(onMoreRoom func()) *Ledger {
	return &Ledger{
		onMoreRoom: onMoreRoom,
		nodes:      map[string]*node{},
		pods:       map[types.UID]*pod{},
		jobs:       map[types.NamespacedName]*job{},
		groups:     map[types.UID]*group{},
		touched:    map[*node]*placement.Node{},
	}
}

// Snapshot is the capacity as of now. It costs nothing while nothing changes.
func (l *Ledger) Snapshot() *placement.Capacity {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notified = false
	if l.snapshot == nil {
		nodes := make([]*placement.Node, len(l.sorted))
		for i, n := range l.sorted {
			nodes[i] = n.look()
		}
		l.snapshot = placement.NewCapacity(nodes)
	}
	return l.snapshot
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
		l.onMoreRoom()
	}
}

// touch must precede every change of a node.
func (l *Ledger) touch(n *node) {
	if _, ok := l.touched[n]; !ok {
		l.touched[n] = n.look()
	}
	n.view = nil
	l.snapshot = nil
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
