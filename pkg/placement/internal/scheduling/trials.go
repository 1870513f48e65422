package scheduling

import (
	"cmp"
	"math/bits"
	"slices"
)

// trials put the Pods on nodes one after the other, several times.
type trials struct {
	job *Job
	// places are nodes, and groups those that are alike for all states: a Pod on one of them means
	// the same as on another.
	places []place
	of     []int32 // the group of each place
	groups []group
	states []state
	wanted int64
	work   *budget
	// domains of all states together, which each try copies.
	domains int
}

// group of places.
type group struct {
	// first of them stands for all.
	first *place
	slots int64
}

func newTrials(j *Job, places []place, states []state, wanted int64, b *budget) *trials {
	t := &trials{job: j, places: places, states: states, wanted: wanted, work: b}
	for _, s := range states {
		for _, topology := range s.topologies() {
			t.domains += topology.size
		}
	}
	t.of, t.groups = t.groupsOf(states)
	return t
}

func (t *trials) spend(work int) {
	field, _ := t.job.coupledBy()
	t.work.spend(work, field)
}

// groupsOf returns the group of each place, too.
func (t *trials) groupsOf(states []state) ([]int32, []group) {
	t.spend(len(t.places))
	d := newDivision(len(t.places))
	for _, s := range states {
		for _, by := range s.topologies() {
			t.spend(d.divide(by, func(i int) int { return t.places[i].index }))
		}
	}
	groups := make([]group, d.groups)
	for i := range t.places {
		g := &groups[d.of[i]]
		if g.first == nil {
			g.first = &t.places[i]
		}
		g.slots += t.places[i].slots
	}
	return d.of, groups
}

// maxSteps bounds one trial: the Pods that are tried, times the groups.
const maxSteps = 500_000

// fill tries as many of the Pods as can be afforded. If they all fit, the others are taken to fit
// wherever there are slots.
func (t *trials) fill() filling {
	all := t.wanted
	t.wanted = min(all, max(maxSteps/int64(max(len(t.groups), 1)), 1))
	f := t.least()
	if f.pods == t.wanted && t.wanted < all {
		slots := int64(0)
		for i := range t.groups {
			slots += t.groups[i].slots
		}
		f.pods = max(min(all, slots), f.pods)
		for i := range t.places {
			f.reasons = append(f.reasons, t.places[i].limit)
		}
	}
	return f
}

// least tries several orders, and choices of the first Pod that bind the others.
func (t *trials) least() filling {
	least := t.try(none, mostSlots)
	try := func(chosen int, prefer order) {
		if least.pods == 0 {
			return
		}
		if tried := t.try(chosen, prefer); tried.pods < least.pods {
			least = tried
		}
	}
	if t.wanted > 1 && t.ordersDiffer() {
		for _, prefer := range []order{fewestSlots, first, last} {
			try(none, prefer)
		}
	}
	for _, chosen := range t.firsts() {
		try(chosen, mostSlots)
	}
	return least
}

// ordersDiffer reports whether it may matter which nodes come first. With a single constraint of
// topology spread, or devices of single nodes, all orders come to the same.
func (t *trials) ordersDiffer() bool {
	coupled := slices.ContainsFunc(t.states, func(s state) bool {
		c, is := s.(interface{ coupled() bool })
		return is && c.coupled()
	})
	return coupled || len(t.job.spread)+len(t.job.affinity)+len(t.job.antiAffinity) > 1
}

// none of the groups.
const none = -1

// maxFirsts bounds how many choices of the first Pod are tried.
const maxFirsts = 8

// firsts are the groups that the first Pod may choose for all of the Job. Those with the fewest
// slots are tried.
func (t *trials) firsts() []int {
	i := slices.IndexFunc(t.states, choosesFirst)
	if t.wanted == 1 || i < 0 {
		return nil
	}
	var firsts []int
	of, near := t.groupsOf(t.states[i : i+1])
	t.spendOnReasons()
	known := make([]bool, len(near))
	for p, choice := range of {
		if !known[choice] && reasonOf(t.states, &t.places[p]) == nil {
			known[choice] = true
			firsts = append(firsts, p)
		}
	}
	slices.SortStableFunc(firsts, func(a, b int) int { return cmp.Compare(near[of[a]].slots, near[of[b]].slots) })
	for i, p := range firsts {
		firsts[i] = int(t.of[p])
	}
	return firsts[:min(len(firsts), maxFirsts)]
}

func choosesFirst(s state) bool {
	a, is := s.(*affinityState)
	return is && a.choosesFirst()
}

func reasonOf(states []state, p *place) *Reason {
	for _, s := range states {
		if reason := s.check(p); reason != nil {
			return reason
		}
	}
	return nil
}

// try puts one Pod after the other into the group that is preferred among those that take it. The
// first goes into a group that was chosen for it, if there is one.
func (t *trials) try(chosen int, prefer order) filling {
	t.spend(len(t.groups)*bits.Len(uint(len(t.groups)))/2 + t.domains/domainsPerWork)
	states := make([]state, len(t.states))
	for i, s := range t.states {
		states[i] = s.clone()
	}
	q := newQueue(t.groups, prefer)
	field, asking := t.job.coupledBy()
	for pods := int64(0); pods < t.wanted; pods++ {
		t.work.spend(checkWork+len(t.groups)/checkWork+q.asked*asking, field)
		q.asked = 0
		best := chosen
		if chosen == none || pods > 0 {
			best = q.next(states)
		}
		if best == none {
			return filling{pods, t.reasons(q.groups, states)}
		}
		q.take(best)
		for _, s := range states {
			if s.add(q.groups[best].first) {
				q.retry()
			}
		}
	}
	return filling{pods: t.wanted}
}

// coupledBy is the field that says most of where the Job's Pods are together, and the work to ask
// about one place.
func (j *Job) coupledBy() (field string, work int) {
	work = checkWork * (1 + len(j.spread) + len(j.affinity) + len(j.antiAffinity))
	switch {
	case len(j.spread) > 0:
		return spreadField, work
	case len(j.affinity) > 0:
		return affinityField, work
	case len(j.antiAffinity) > 0:
		return antiAffinityField, work
	default:
		return volumesField, work
	}
}

// spendOnReasons is to ask all places once.
func (t *trials) spendOnReasons() {
	field, asking := t.job.coupledBy()
	t.work.spend(len(t.places)*asking/checkWork, field)
}

// reasons why nodes take no further Pod.
func (t *trials) reasons(groups []group, states []state) []*Reason {
	t.spendOnReasons()
	reasons := make([]*Reason, len(t.places))
	for i := range t.places {
		g := &groups[t.of[i]]
		if reasons[i] = t.places[i].limit; g.slots > 0 {
			reasons[i] = reasonOf(states, g.first)
		}
	}
	return reasons
}
