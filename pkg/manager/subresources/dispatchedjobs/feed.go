package dispatchedjobs

import (
	"sync"

	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

// change is a Job whose reason has changed, and the name that the event has for it.
type change struct {
	jobview.Subject

	name string
}

// feed tells a watch of the Jobs of a namespace, or of all, whose reasons have changed. A Job is in
// it once, however often that happens.
type feed struct {
	namespace string
	from      *Reasons
	changed   chan struct{} // has room for one

	mu      sync.Mutex
	changes map[change]struct{}
}

func (r *Reasons) subscribe(namespace string) *feed {
	f := &feed{namespace: namespace, from: r, changed: make(chan struct{}, 1), changes: map[change]struct{}{}}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.feeds[f] = struct{}{}
	return f
}

func (f *feed) end() {
	f.from.mu.Lock()
	defer f.from.mu.Unlock()
	delete(f.from.feeds, f)
}

func (f *feed) add(c change) {
	if f.namespace != "" && f.namespace != c.Namespace {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.changes) < maxReasons {
		f.changes[c] = struct{}{}
	}
	wake.Signal(f.changed)
}

// take returns some of the changes. The channel tells of the others once more.
func (f *feed) take(most int) []change {
	f.mu.Lock()
	defer f.mu.Unlock()
	var taken []change
	for c := range f.changes {
		if len(taken) == most {
			wake.Signal(f.changed)
			break
		}
		taken = append(taken, c)
		delete(f.changes, c)
	}
	return taken
}
