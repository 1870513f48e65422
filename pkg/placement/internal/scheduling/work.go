package scheduling

import "github.com/jobferry/jobferry/pkg/placement/internal/capacity"

// mostWork bounds the comparisons of one Job with all workers that it's judged in, in units of
// about 5 ns. A clock would make answers depend on the machine: that is the last resort. Judged
// lightly, a Job takes lightWork at most.
const (
	mostWork  = 20_000_000
	lightWork = mostWork / 20
)

// What comparisons take.
const (
	podWork    = 2   // to look at a Pod, or a kind of them
	labelBytes = 16  // of Pods' labels, for one unit
	volumeWork = 32  // to compare a volume, or an amount of storage, with a node
	checkWork  = 4   // to ask one constraint about a place
	limitWork  = 64  // to fill in, or compare, one resource of a container, or of a quota
	claimWork  = 128 // to count one request of a claim for quotas
	keyBytes   = 4   // of a worker's objects in a key, for one unit
	attendWork = 40  // to find a group member's slots on a node
	takingWork = 4   // to find what a Pod takes of one resource there
	takeWork   = 8   // to leave out a Pod that may be preempted, or to keep it
	optionWork = 8   // to choose it, or another place
	newWork    = 16  // to take note of one that wasn't known, in a map
	labelWork  = 5   // to look up a node's label

	// To read, of the nodes that reach a volume, a term, a requirement or a value. To compare them
	// with a node takes a part of it.
	reachTerm, reachRequirement, reachValue = 8, 240, 35
	reachComparisons                        = 16

	// perMicrosecond is how many units are a microsecond.
	perMicrosecond = 200
	// lookEvery is the work between two looks at the clock.
	lookEvery = 200_000
	// domainsPerWork is how many domains are counted in one unit.
	domainsPerWork = 4
)

// budget is the work that is left for one attempt to judge a Job in one worker. Nil: there is no
// bound.
type budget struct {
	left, look int
	expired    func() bool
	// selected are the Pods by the selectors of the Job, as far as anybody asked.
	selected map[*podSelector]*selection
	// near is which Jobs want to be near which others, as far as anybody asked.
	near map[[2]*Job]bool
}

func newBudget(left int, expired func() bool) *budget {
	return &budget{left: left, look: left - lookEvery, expired: expired, selected: map[*podSelector]*selection{}, near: map[[2]*Job]bool{}}
}

// once finds out which Pods a selector of the Job selects, if that isn't known.
func (b *budget) once(by *podSelector, find func() *selection) *selection {
	if b == nil {
		return find()
	}
	found, is := b.selected[by]
	if !is {
		found = find()
		b.selected[by] = found
	}
	return found
}

// nears finds out whether a Job wants to be near another, if that isn't known.
func (b *budget) nears(j, other *Job, find func() bool) bool {
	if b == nil {
		return find()
	}
	b.spend(checkWork, affinityField)
	near, is := b.near[[2]*Job{j, other}]
	if !is {
		near = find()
		b.near[[2]*Job{j, other}] = near
	}
	return near
}

// tooMuch is the field of the Job for which no work is left. To panic with it ends what is deep
// inside the comparison of a Job with a worker; bounded recovers.
type tooMuch string

// spend takes work for a field from what is left.
func (b *budget) spend(work int, field string) {
	if b == nil {
		return
	}
	if b.left -= work; b.left < 0 {
		panic(tooMuch(field))
	}
	if b.left < b.look && b.expired != nil {
		if b.look = b.left - lookEvery; b.expired() {
			panic(tooMuch(field))
		}
	}
}

// bounded asks about a Job; once more without the field for which that takes too much work; and at
// last, by what the Job requests alone. Each time it may take half of what is left for all workers:
// one that is large, or hostile, leaves something for the others.
//
// Lightly, it asks once.
func bounded[T any](j *Job, ask func(*Job, *budget) T) (answer T, judged *Job) {
	if j.lightly {
		answer, _ = attempt(j, ask)
		return answer, j
	}
	for _, less := range []func(*Job, string) *Job{(*Job).without, (*Job).bare} {
		found, field := attempt(j, ask)
		if field == "" {
			return found, j
		}
		j = less(j, field)
	}
	return ask(j, nil), j
}

// attempt asks about a Job with half of the work that is left, or lightly with all, and returns the
// field for which that was too little.
func attempt[T any](j *Job, ask func(*Job, *budget) T) (answer T, field string) {
	if j.lightly {
		b := newBudget(*j.left, nil)
		answer, field = within(b, j, ask)
		*j.left = b.left
		return answer, field
	}
	b := newBudget(*j.left/2, j.Expired)
	answer, field = within(b, j, ask)
	*j.left -= *j.left/2 - max(b.left, 0)
	return answer, field
}

// Lightly has the Job judged only if that takes little work; the answers mean nothing if it was
// TooMuch.
func (j *Job) Lightly() { j.lightly, *j.left = true, lightWork-j.reading }

// TooMuch reports whether a Job that was to be judged lightly takes more work than that.
func (j *Job) TooMuch() bool { return *j.left < 0 }

// Work is what it has taken to judge the Job so far, as a part of the most that it may take.
func (j *Job) Work() float64 {
	most := mostWork
	if j.lightly {
		most = lightWork
	}
	return 1 - float64(*j.left)/float64(most)
}

// within returns the field for which the work was too much; empty: it wasn't.
func within[T any](b *budget, j *Job, ask func(*Job, *budget) T) (answer T, field string) {
	defer func() {
		if cause := recover(); cause != nil {
			over, is := cause.(tooMuch)
			if !is {
				panic(cause)
			}
			field = string(over)
		}
	}()
	return ask(j, b), ""
}

// without is the Job without a field, as if it didn't matter for it where its Pods are.
func (j *Job) without(field string) *Job {
	changed := j.with(capacity.Without(j.spec, []string{field}))
	changed.unjudged = append(changed.unjudged, field)
	return changed
}

// bare is the Job with nothing but what its Pods request.
func (j *Job) bare(field string) *Job {
	changed := j.with(capacity.Bare(j.spec))
	changed.unjudged, changed.isBare = append(changed.unjudged, field), true
	return changed
}
