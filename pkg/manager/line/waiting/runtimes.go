package waiting

import (
	"cmp"
	"slices"
	"time"
)

// Runtimes are how long the last Jobs of some kind ran. The zero value has none.
type Runtimes struct {
	last  []runtime
	next  int // to be replaced
	usual Usual
}

// runtime is that of a Job that has completed.
type runtime struct {
	started int64 // in seconds since 1970: a worker may say any year
	took    time.Duration
}

const (
	// maxRuntimes bounds how many are kept, and minRuntimes is how many say something.
	maxRuntimes = 64
	minRuntimes = 8
	// minGuess is the shortest time that a Job is expected to run on which nothing is known of.
	minGuess = time.Minute
)

// Add remembers a Job that has completed.
func (r *Runtimes) Add(started time.Time, took time.Duration) {
	if len(r.last) < maxRuntimes {
		r.last = append(r.last, runtime{started.Unix(), took})
	} else {
		r.last[r.next] = runtime{started.Unix(), took}
		r.next = (r.next + 1) % maxRuntimes
	}
	if len(r.last) >= minRuntimes {
		r.usual = r.usualNow()
	}
}

func (r *Runtimes) usualNow() Usual {
	sorted := slices.SortedFunc(slices.Values(r.last), func(a, b runtime) int { return cmp.Compare(a.started, b.started) })
	longest := slices.MaxFunc(sorted, func(a, b runtime) int { return cmp.Compare(a.took, b.took) }).took
	now := Usual{longest, time.Unix(sorted[minRuntimes-1].started, 0).UTC().Add(longest)}
	if longest <= r.usual.Longest && r.usual.From.Before(now.From) {
		now.From = r.usual.From // what was known isn't forgotten because others have begun
	}
	return now
}

// Usual is what they say of others; zero: nothing yet.
func (r *Runtimes) Usual() Usual { return r.usual }

// Usual is how long Jobs of some kind run.
type Usual struct {
	// Longest is the longest of the last runtimes.
	Longest time.Duration
	// From is when enough of them began for as long ago. Before, they say nothing: of Jobs that began
	// together the short ones complete first.
	From time.Time
}

// at is how long each Job runs, as far as that can be said at a time; zero: nobody can say.
func (u Usual) at(now time.Time) time.Duration {
	if now.Before(u.From) {
		return 0
	}
	return u.Longest
}

// Basis is what an expected time is made of, the better ones first.
type Basis uint8

const (
	// ByDeadline: it's then at the latest.
	ByDeadline Basis = iota
	// ByUsual: it's then if Jobs run for as long as others of their kind did.
	ByUsual
	// ByNothing: nobody can say. The time bounds for how long others may go before, and is told to
	// nobody.
	ByNothing
)

// Expected is when something will have happened.
type Expected struct {
	At    time.Time
	Basis Basis
}

// Run is a Job that runs in a worker.
type Run struct {
	// Started is when it began, and Deadline is how long it may run; zero: for ever.
	Started  time.Time
	Deadline time.Duration
}

// End is when the Job ends: by its deadline, or as others of its kind do. One that has run for
// longer is expected to go on for as long again as it is late.
func (r Run) End(usual Usual, now time.Time) Expected {
	if at := r.Started.Add(r.Deadline); r.Deadline > 0 && at.After(now) {
		return Expected{at, ByDeadline}
	}
	at := r.Started.Add(usual.at(now))
	if at.After(now) {
		return Expected{at, ByUsual}
	}
	return Expected{now.Add(max(now.Sub(at), minGuess)), ByNothing}
}
