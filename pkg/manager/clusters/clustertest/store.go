package clustertest

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// history is how many changes of a resource a watch can be behind.
const history = 4096

// store has the objects of a cluster, and their latest changes.
type store struct {
	mu        sync.Mutex
	version   uint64
	resources map[string]*collection
}

// collection has the objects of one resource. The store's lock guards it.
type collection struct {
	objects map[types.NamespacedName]*stored
	// changes are the latest; dropped is how many there were before them, and lost the version of the
	// last one of those.
	changes []change
	dropped int
	lost    uint64
	// changed is closed after the next change.
	changed chan struct{}
}

// change is from one version of an object to the next; nil: there is none.
type change struct {
	before, after *stored
	// version that the change made; a deletion has the object's last state in before, with this
	// version.
	version uint64
}

func newStore() *store { return &store{version: 1, resources: map[string]*collection{}} }

func (s *store) of(resource string) *collection {
	c := s.resources[resource]
	if c == nil {
		c = &collection{objects: map[types.NamespacedName]*stored{}, changed: make(chan struct{})}
		s.resources[resource] = c
	}
	return c
}

// write changes one object. What next returns for it, given nil if there is none, is its new state;
// nil: it's gone. It's gone, too, when its deletion has no finalizer to wait for. It returns the
// last state.
func (s *store) write(resource string, name types.NamespacedName, next func(Object) (Object, error)) (*stored, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.of(resource)
	before := c.objects[name]
	var old Object
	if before != nil {
		old = before.object()
	}
	o, err := next(old)
	if err != nil {
		return nil, err
	}
	if o == nil && before == nil {
		return nil, nil
	}
	if o != nil && before != nil && bytes.Equal(before.raw, newStored(before.kind, o, before.version).raw) {
		return before, nil
	}
	s.version++
	if o == nil || o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 {
		last := before.object()
		if o != nil {
			last = o
		}
		gone := newStored(kinds[resource], last, s.version)
		delete(c.objects, name)
		c.record(change{before: gone, version: s.version})
		return gone, nil
	}
	after := newStored(kinds[resource], o, s.version)
	c.objects[name] = after
	c.record(change{before, after, s.version})
	return after, nil
}

func (c *collection) record(next change) {
	c.changes = append(c.changes, next)
	if len(c.changes) >= 2*history {
		c.drop(history)
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

// drop forgets the oldest changes.
func (c *collection) drop(n int) {
	if n == 0 {
		return
	}
	c.lost = c.changes[n-1].version
	c.dropped += n
	c.changes = slices.Clone(c.changes[n:])
}

// compact forgets all changes, so that no watch can continue.
func (s *store) compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.resources {
		c.drop(len(c.changes))
	}
	s.version++
	for _, c := range s.resources {
		c.lost = s.version
	}
}

// list is all objects of a resource, in order of their names, the version of that state, and where
// the changes after it begin.
func (s *store) list(resource string) (all []*stored, version uint64, position int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.of(resource)
	for _, o := range c.objects {
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b *stored) int {
		return cmp.Or(strings.Compare(a.name.Namespace, b.name.Namespace), strings.Compare(a.name.Name, b.name.Name))
	})
	return all, s.version, c.dropped + len(c.changes)
}

// since is where the changes after a version begin; false: they are forgotten.
func (s *store) since(resource string, version uint64) (position int, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.of(resource)
	if version < c.lost {
		return 0, false
	}
	n, _ := slices.BinarySearchFunc(c.changes, version+1, func(a change, v uint64) int { return cmp.Compare(a.version, v) })
	return c.dropped + n, true
}

// after is the changes from a position on, the version that they lead to, and what is closed when
// there are more; false: some are forgotten.
func (s *store) after(resource string, position int) (changes []change, version uint64, more <-chan struct{}, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.of(resource)
	if position < c.dropped {
		return nil, 0, nil, false
	}
	return slices.Clone(c.changes[position-c.dropped:]), s.version, c.changed, true
}

func (s *store) get(resource string, name types.NamespacedName) *stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of(resource).objects[name]
}

// Backup takes a copy of the cluster's state. What it returns puts that back, as a restore of etcd
// does, and ends all watches, as the API servers are restarted.
func (c *Cluster) Backup() (restore func()) {
	version, objects := c.store.copied()
	return func() {
		c.store.restore(version, objects)
		c.BreakWatches(true)
	}
}

func (s *store) copied() (version uint64, objects map[string]map[types.NamespacedName]*stored) {
	s.mu.Lock()
	defer s.mu.Unlock()
	objects = map[string]map[types.NamespacedName]*stored{}
	for resource, c := range s.resources {
		objects[resource] = maps.Clone(c.objects)
	}
	return s.version, objects
}

func (s *store) restore(version uint64, objects map[string]map[types.NamespacedName]*stored) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = version
	for resource, c := range s.resources {
		c.objects = map[types.NamespacedName]*stored{}
		maps.Copy(c.objects, objects[resource])
		c.dropped += len(c.changes)
		c.changes, c.lost = nil, version
		close(c.changed)
		c.changed = make(chan struct{})
	}
}

// Put adds an object, or replaces it, whatever it was. Without a UID, it gets one.
func (c *Cluster) Put(resource string, o Object) {
	_, _ = c.store.write(resource, types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}, func(Object) (Object, error) {
		complete(o)
		return o, nil
	}) // it has no error of its own
}

// complete gives a new object what each has.
func complete(o Object) {
	if o.GetUID() == "" {
		o.SetUID(newUID())
	}
	if created := o.GetCreationTimestamp(); created.IsZero() {
		o.SetCreationTimestamp(metav1.NewTime(time.Now()))
	}
	if o.GetGeneration() == 0 {
		o.SetGeneration(1)
	}
}

// Get returns an object as it is now; nil: there is none.
func (c *Cluster) Get(resource, namespace, name string) Object {
	if o := c.store.get(resource, types.NamespacedName{Namespace: namespace, Name: name}); o != nil {
		return o.object()
	}
	return nil
}

// Count is how many objects of a resource there are.
func (c *Cluster) Count(resource string) int {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	return len(c.store.of(resource).objects)
}
