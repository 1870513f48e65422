package copier

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/jobferry/jobferry/pkg/util/ownwrite"

	"github.com/jobferry/jobferry/pkg/manager/carry"
)

// Source is an object on the hub.
type Source struct {
	Kind carry.Kind
	types.NamespacedName
}

// Copied is what was copied for one Job.
type Copied struct {
	// Mirror is the UID of the mirror that it was copied for.
	Mirror types.UID
	// Seen is the resourceVersion of each source as it was read. Of a missing source, it's the
	// newest known one before; empty: none.
	Seen map[Source]string
	// Blocked are the reasons why the Job's Pods can't start.
	Blocked []string
	// Notes are for the user.
	Notes []string
	// At is the time of the copying.
	At time.Time
}

// Tracker records what was copied for which Job, and which of the sources have changed since.
type Tracker struct {
	mu     sync.Mutex
	copied map[types.NamespacedName]Copied
	// sources of each Job, and the Jobs of each source.
	sources map[types.NamespacedName]sets.Set[Source]
	jobs    map[Source]sets.Set[types.NamespacedName]
	// newest is the latest resourceVersion that the watch showed of a source with Jobs.
	newest map[Source]string
}

// NewTracker returns an empty tracker.
func NewTracker() *Tracker {
	return &Tracker{
		copied:  map[types.NamespacedName]Copied{},
		sources: map[types.NamespacedName]sets.Set[Source]{},
		jobs:    map[Source]sets.Set[types.NamespacedName]{},
		newest:  map[Source]string{},
	}
}

// Track records that a Job depends on a source, and returns the source's newest known version;
// empty: none. Call it before the source is read.
func (t *Tracker) Track(job types.NamespacedName, source Source) (version string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sources[job] == nil {
		t.sources[job] = sets.New[Source]()
	}
	if t.jobs[source] == nil {
		t.jobs[source] = sets.New[types.NamespacedName]()
	}
	t.sources[job].Insert(source)
	t.jobs[source].Insert(job)
	return t.newest[source]
}

// Record records what was copied for a Job.
func (t *Tracker) Record(job types.NamespacedName, copied Copied) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.copied[job] = copied
}

// Get returns what was copied for a Job's mirror. It's current if no source has changed since.
func (t *Tracker) Get(job types.NamespacedName, mirror types.UID) (copied Copied, current bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	copied, known := t.copied[job]
	if !known || copied.Mirror != mirror {
		return Copied{}, false
	}
	for source, version := range copied.Seen {
		if newer(t.newest[source], version) {
			return copied, false
		}
	}
	return copied, true
}

// SourceChanged records a source's version from the watch, and returns the Jobs for which an older
// one was copied, or none yet.
func (t *Tracker) SourceChanged(source Source, version string) []types.NamespacedName {
	t.mu.Lock()
	defer t.mu.Unlock()
	jobs := t.jobs[source]
	if len(jobs) == 0 {
		return nil
	}
	if newer(version, t.newest[source]) {
		t.newest[source] = version
	}
	return slices.DeleteFunc(jobs.UnsortedList(), func(job types.NamespacedName) bool {
		seen, known := t.copied[job].Seen[source]
		return known && !newer(version, seen)
	})
}

// Forget removes a Job.
func (t *Tracker) Forget(job types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.copied, job)
	for source := range t.sources[job] {
		if t.jobs[source].Delete(job); t.jobs[source].Len() == 0 {
			delete(t.jobs, source)
			delete(t.newest, source)
		}
	}
	delete(t.sources, job)
}

// newer reports whether a is the newer resourceVersion of one object. Invalid versions aren't
// newer.
func newer(a, b string) bool {
	if a == "" || b == "" {
		return a != "" && b == ""
	}
	return ownwrite.NewerVersion(a, b)
}
