package dispatchedjobs

import (
	linked "container/list"
	"math"

	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/util/places"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

// maxChanges is how many changes are kept for the watches of all namespaces together, and again for
// those of single ones. The Jobs' namespaces share them.
const maxChanges = 5 * maxReasons

// change is a Job whose reason has changed, and the name that the event has for it.
type change struct {
	jobview.Subject

	name string
}

// numbered is a change, which is later than those of lower numbers.
type numbered struct {
	change

	number uint64
}

// feeds are those of the watches of a namespace, or of all. There may be many of them, and very
// many changes: these are kept once, until all feeds have taken them. A Job is in them once,
// however often its reason changes.
type feeds struct {
	changes *linked.List // of numbered, the newest last
	at      map[change]*linked.Element
	places  *places.Shared
	newest  uint64
	all     map[*feed]struct{}
}

// feed tells a watch of the Jobs whose reasons have changed.
type feed struct {
	namespace string
	from      *Reasons
	changed   chan struct{} // has room for one
	taken     uint64        // the number of the last change that was taken
}

func (r *Reasons) subscribe(namespace string) *feed {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.feeds[namespace]
	if of == nil {
		of = &feeds{changes: linked.New(), at: map[change]*linked.Element{}, places: r.changes, all: map[*feed]struct{}{}}
		if namespace == "" {
			of.places = places.NewShared(maxChanges)
		}
		r.feeds[namespace] = of
	}
	f := &feed{namespace: namespace, from: r, changed: make(chan struct{}, 1), taken: of.newest}
	of.all[f] = struct{}{}
	return f
}

func (f *feed) end() {
	f.from.mu.Lock()
	defer f.from.mu.Unlock()
	of := f.from.feeds[f.namespace]
	delete(of.all, f)
	of.dropTaken()
	if len(of.all) == 0 {
		delete(f.from.feeds, f.namespace)
	}
}

// notify tells the watches of a Job's namespace, and those of all.
func (r *Reasons) notify(c change) {
	for _, namespace := range []string{c.Namespace, ""} {
		if of := r.feeds[namespace]; of != nil && of.keep(c) {
			for f := range of.all {
				wake.Signal(f.changed)
			}
		}
	}
}

// oldest is the oldest change, and where it is; nil: there is none.
func (of *feeds) oldest() (c numbered, at *linked.Element) {
	if at = of.changes.Front(); at != nil {
		c, _ = at.Value.(numbered)
	}
	return c, at
}

// keep keeps a change. Without a place for it, it takes that of the oldest one, if the namespace of
// that has as many places. All watches have taken that one, but for those that are slow.
func (of *feeds) keep(c change) bool {
	at := of.at[c]
	if at == nil && of.places.Take(c.Namespace) {
		at = of.changes.PushBack(nil)
	}
	if at == nil {
		oldest, front := of.oldest()
		if front == nil || of.places.Of(oldest.Namespace) < of.places.Of(c.Namespace) {
			return false
		}
		of.places.Pass(oldest.Namespace, c.Namespace)
		delete(of.at, oldest.change)
		at = front
	}
	of.newest++
	at.Value, of.at[c] = numbered{c, of.newest}, at
	of.changes.MoveToBack(at)
	return true
}

// take returns some of the changes. The channel tells of the others once more.
func (f *feed) take(most int) []change {
	f.from.mu.Lock()
	defer f.from.mu.Unlock()
	of := f.from.feeds[f.namespace]
	defer of.dropTaken()
	var taken []change
	for at := of.changes.Front(); at != nil; at = at.Next() {
		c, _ := at.Value.(numbered)
		switch {
		case c.number <= f.taken:
			continue
		case len(taken) == most:
			wake.Signal(f.changed)
			return taken
		}
		taken, f.taken = append(taken, c.change), c.number
	}
	return taken
}

// dropTaken drops the changes that all feeds have taken.
func (of *feeds) dropTaken() {
	least := uint64(math.MaxUint64)
	for f := range of.all {
		least = min(least, f.taken)
	}
	for c, at := of.oldest(); at != nil && c.number <= least; c, at = of.oldest() {
		of.changes.Remove(at)
		delete(of.at, c.change)
		of.places.Give(c.Namespace)
	}
}
