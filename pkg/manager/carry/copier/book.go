package copier

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/jobferry/jobferry/pkg/manager/carry"
)

// Source is an object on the hub.
type Source struct {
	Kind carry.Kind
	types.NamespacedName
}

// Record is what has been carried for one Job.
type Record struct {
	// Mirror is the mirror that it was carried for.
	Mirror types.UID
	// Seen is the resourceVersion of each source as it was read, or the newest known before it was
	// found to be gone; empty: none.
	Seen map[Source]string
	// Blocked says what keeps the Job's Pods from starting.
	Blocked []string
	// Notes are worth telling.
	Notes []string
	// At is when it was carried.
	At time.Time
}

// Book remembers what has been carried for which Job, and which of the sources have changed since.
type Book struct {
	mu      sync.Mutex
	records map[types.NamespacedName]Record
	// follows and followers say which Job depends on which source.
	follows   map[types.NamespacedName]map[Source]struct{}
	followers map[Source]map[types.NamespacedName]struct{}
	// newest is the latest resourceVersion that the watch showed of a source with followers.
	newest map[Source]string
}

// NewBook returns an empty book.
func NewBook() *Book {
	return &Book{
		records:   map[types.NamespacedName]Record{},
		follows:   map[types.NamespacedName]map[Source]struct{}{},
		followers: map[Source]map[types.NamespacedName]struct{}{},
		newest:    map[Source]string{},
	}
}

// Follow enters that a Job depends on a source, and returns the source's newest known version;
// empty: none. It comes before the source is read.
func (b *Book) Follow(job types.NamespacedName, source Source) (version string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.follows[job] == nil {
		b.follows[job] = map[Source]struct{}{}
	}
	if b.followers[source] == nil {
		b.followers[source] = map[types.NamespacedName]struct{}{}
	}
	b.follows[job][source] = struct{}{}
	b.followers[source][job] = struct{}{}
	return b.newest[source]
}

// Enter notes what has been carried for a Job.
func (b *Book) Enter(job types.NamespacedName, record Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.records[job] = record
}

// Of returns what has been carried for a Job's mirror, and whether it's current: no source has
// changed since.
func (b *Book) Of(job types.NamespacedName, mirror types.UID) (record Record, current bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	record, known := b.records[job]
	if !known || record.Mirror != mirror {
		return Record{}, false
	}
	for source, version := range record.Seen {
		if newer(b.newest[source], version) {
			return record, false
		}
	}
	return record, true
}

// Changed takes over a source's version from the watch, and returns the Jobs that were carried with
// an older one, or not yet.
func (b *Book) Changed(source Source, version string) []types.NamespacedName {
	b.mu.Lock()
	defer b.mu.Unlock()
	followers := b.followers[source]
	if len(followers) == 0 {
		return nil
	}
	if newer(version, b.newest[source]) {
		b.newest[source] = version
	}
	return slices.DeleteFunc(slices.Collect(maps.Keys(followers)), func(job types.NamespacedName) bool {
		seen, known := b.records[job].Seen[source]
		return known && !newer(version, seen)
	})
}

// Forget drops a Job.
func (b *Book) Forget(job types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.records, job)
	for source := range b.follows[job] {
		delete(b.followers[source], job)
		if len(b.followers[source]) == 0 {
			delete(b.followers, source)
			delete(b.newest, source)
		}
	}
	delete(b.follows, job)
}

// newer compares the resourceVersions of two states of one object. What can't be compared isn't
// newer.
func newer(a, b string) bool {
	if a == "" || b == "" {
		return a != "" && b == ""
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}
