package copier

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	"github.com/jobferry/jobferry/pkg/util/ownwrite"

	"github.com/jobferry/jobferry/pkg/manager/carry"
)

// Source is an object on the hub.
type Source struct {
	Kind carry.Kind
	types.NamespacedName
}

func (s Source) compare(o Source) int {
	return cmp.Or(cmp.Compare(s.Kind, o.Kind), cmp.Compare(s.Namespace, o.Namespace), cmp.Compare(s.Name, o.Name))
}

// Place is a Job in one of its workers.
type Place struct {
	types.NamespacedName
	Worker string
}

// Copied is what was copied for a Job into one worker.
type Copied struct {
	// Mirror is the UID of the mirror that it was copied for.
	Mirror types.UID
	// Kinds are those that were copied.
	Kinds []carry.Kind
	// Seen is the resourceVersion of each source as it was read. Of a missing source, it's the
	// newest known one before; empty: none.
	Seen map[Source]string
	// Blocked are the reasons why the Job's Pods can't start.
	Blocked []string
	// Notes are for the user.
	Notes []string
	// said is what Blocked and Notes say of some sources. Get makes those of it.
	said map[Source]remark
	// At is the time of the copying.
	At time.Time
	// Due is when what has changed since is to be copied; zero: nothing has. The tracker sets it.
	Due time.Time
}

// remark has texts without the kind and name of the source, if they begin with it: very many
// sources that are missing have one.
type remark struct{ blocked, note unique.Handle[string] }

func (s Source) ref() carry.Ref { return carry.Ref{Kind: s.Kind, Name: s.Name, Optional: true} }

func remarkOf(ref carry.Ref, blocked, note string) remark {
	rest := func(text string) unique.Handle[string] { return unique.Make(strings.TrimPrefix(text, ref.String())) }
	return remark{rest(blocked), rest(note)}
}

func (r remark) blocks() bool { return r.blocked != unique.Make("") }

// say adds what was said of a source.
func (s Source) say(all []string, rest unique.Handle[string]) []string {
	switch text := rest.Value(); {
	case text == "":
		return all
	case strings.HasPrefix(text, " "):
		return append(all, s.ref().String()+text)
	default:
		return append(all, text)
	}
}

// saying has what was said of all sources together.
func (c Copied) saying() Copied {
	for source, said := range c.said {
		c.Blocked, c.Notes = source.say(c.Blocked, said.blocked), source.say(c.Notes, said.note)
	}
	slices.Sort(c.Blocked)
	slices.Sort(c.Notes)
	return c
}

// Tracker records what was copied for which Job, and which of the sources have changed since.
type Tracker struct {
	clock clock.PassiveClock

	mu     sync.Mutex
	places map[types.NamespacedName]map[string]*placeState // by Job and worker
	users  map[Source]*users
	// newest is the latest resourceVersion that the watch showed of a source with users.
	newest map[Source]string
	// counted is how many references count towards maxCounted.
	counted    int
	namespaces map[string]*namespace
}

// users of a source.
type users struct {
	Source
	count int
	// asking are those that are looked at when the source changes: all but the ones that have had a
	// turn for an earlier change, and haven't copied the source since.
	asking sets.Set[*placeState]
}

// placeState is what is known of one place.
type placeState struct {
	Place
	*namespace
	sources []*users
	// copied is what was copied last; its zero value: nothing yet.
	copied Copied
	// due is when changes of the sources are looked at.
	due time.Time
}

// NewTracker returns an empty tracker.
func NewTracker(clock clock.PassiveClock) *Tracker {
	return &Tracker{
		clock:      clock,
		places:     map[types.NamespacedName]map[string]*placeState{},
		users:      map[Source]*users{},
		newest:     map[Source]string{},
		namespaces: map[string]*namespace{},
	}
}

// Track records that a Job depends on some sources. Call it before they are read. It tracks none of
// them, and returns false, if the Job's namespace has as many as it may.
func (t *Tracker) Track(p Place, sources ...Source) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.open(p)
	added := slices.DeleteFunc(slices.Clone(sources), func(s Source) bool { return slices.Contains(at.sources, t.users[s]) })
	slices.SortFunc(added, Source.compare)
	added = slices.Compact(added)
	if !t.count(at, len(added)) {
		return false
	}
	for _, source := range added {
		u := t.users[source]
		if u == nil {
			u = &users{Source: source, asking: sets.New[*placeState]()}
			t.users[source] = u
		}
		u.count++
		u.asking.Insert(at)
		at.sources = append(at.sources, u)
	}
	at.sources = slices.Clip(at.sources)
	return true
}

// open returns what is known of a place, from now on.
func (t *Tracker) open(p Place) *placeState {
	workers := t.places[p.NamespacedName]
	if workers == nil {
		workers = map[string]*placeState{}
		t.places[p.NamespacedName] = workers
	}
	at := workers[p.Worker]
	if at == nil {
		n := t.namespaces[p.Namespace]
		if n == nil {
			n = &namespace{}
			t.namespaces[p.Namespace] = n
		}
		n.places++
		at = &placeState{Place: p, namespace: n}
		workers[p.Worker] = at
	}
	return at
}

// version is the newest known one of a source that is tracked; empty: none.
func (t *Tracker) version(source Source) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.newest[source]
}

// Record records what was copied. The Job doesn't depend on other sources any more.
func (t *Tracker) Record(p Place, copied Copied) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.open(p)
	at.copied = copied
	t.untrack(at, copied.Seen)
	for _, u := range at.sources {
		u.asking.Insert(at)
	}
}

// Get returns what was copied for a Job's mirror. It's current if no source has changed since, or
// if that is to be looked at later.
func (t *Tracker) Get(p Place, mirror types.UID) (copied Copied, current bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.places[p.NamespacedName][p.Worker]
	if at == nil || at.copied.At.IsZero() || at.copied.Mirror != mirror {
		return Copied{}, false
	}
	copied = at.copied.saying()
	for source, version := range copied.Seen {
		if newer(t.newest[source], version) {
			copied.Due = at.due
			return copied, at.due.After(t.clock.Now())
		}
	}
	return copied, true
}

// SourceChanged records a source's version from the watch. It returns the Jobs for which an older
// one was copied, or none yet, and in what time each is to be reconciled; but not those that were
// returned for an earlier change, and still are to copy that.
func (t *Tracker) SourceChanged(source Source, version string) map[types.NamespacedName]time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	u, before, now := t.users[source], t.newest[source], t.clock.Now()
	if u == nil {
		return nil
	}
	if newer(version, before) {
		t.newest[source] = version
	}
	jobs := map[types.NamespacedName]time.Duration{}
	for at := range u.asking {
		seen, known := at.copied.Seen[source]
		if known && !newer(version, seen) {
			continue
		}
		u.asking.Delete(at)
		if !at.due.IsZero() && (!known || newer(before, seen)) {
			continue // it has its turn since an earlier change, and isn't put off by this one
		}
		at.due = at.turn(now)
		if _, sooner := jobs[at.NamespacedName]; !sooner {
			jobs[at.NamespacedName] = max(0, at.due.Sub(now))
		}
	}
	return jobs
}

// Forget removes a Job.
func (t *Tracker) Forget(job types.NamespacedName) { t.LeaveOthers(Place{NamespacedName: job}) }

// LeaveOthers removes a Job in all workers but one.
func (t *Tracker) LeaveOthers(p Place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(p.NamespacedName, func(worker string) bool { return worker != p.Worker })
}

// ForgetWorker removes all Jobs in one worker.
func (t *Tracker) ForgetWorker(worker string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for job := range t.places {
		t.forget(job, func(is string) bool { return is == worker })
	}
}

// forget removes a Job in some of its workers.
func (t *Tracker) forget(job types.NamespacedName, in func(worker string) bool) {
	workers := t.places[job]
	maps.DeleteFunc(workers, func(worker string, at *placeState) bool {
		if !in(worker) {
			return false
		}
		t.untrack(at, nil)
		if at.places--; at.places == 0 {
			delete(t.namespaces, job.Namespace)
		}
		return true
	})
	if len(workers) == 0 {
		delete(t.places, job)
	}
}

// untrack removes the sources that aren't kept.
func (t *Tracker) untrack(at *placeState, keep map[Source]string) {
	var left []*users
	for _, u := range at.sources {
		if _, kept := keep[u.Source]; kept {
			left = append(left, u)
			continue
		}
		u.asking.Delete(at)
		if u.count--; u.count == 0 {
			delete(t.users, u.Source)
			delete(t.newest, u.Source)
		}
	}
	t.count(at, len(left)-len(at.sources))
	at.sources = left
}

// newer reports whether a is the newer resourceVersion of one object. Invalid versions aren't
// newer.
func newer(a, b string) bool {
	if a == "" || b == "" {
		return a != "" && b == ""
	}
	return ownwrite.NewerVersion(a, b)
}
