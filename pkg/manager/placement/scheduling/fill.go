package scheduling

import (
	"math"
	"slices"
	"strings"
)

// filling is what became of the Pods of a Job in one view.
type filling struct {
	// pods that found a node.
	pods int64
	// reasons of the nodes that take no further one.
	reasons []*Reason
}

// fill counts how many of the wanted Pods find a node.
func (j *Job) fill(v view, wanted int64) filling {
	filters, states := j.filters(v), j.states(v)
	if len(states) == 0 {
		return sum(v, filters, wanted)
	}
	places, reasons := placesOf(v, filters)
	t := trials{job: j, places: places, states: states, wanted: wanted}
	f := t.least()
	f.reasons = append(f.reasons, reasons...)
	return f
}

// sum adds up the slots of nodes, until there are enough.
func sum(v view, filters []filter, wanted int64) filling {
	var f filling
	var p place
	for _, n := range v.Nodes {
		p = newPlace(n)
		if reason := firstReason(filters, &p); reason != nil {
			f.reasons = append(f.reasons, reason)
			continue
		}
		f.reasons = append(f.reasons, p.limit)
		if f.pods += p.slots; f.pods >= wanted {
			return filling{pods: wanted}
		}
	}
	return f
}

// placesOf are the nodes that pass all plugins that look at a node alone, and the reasons of the
// others.
func placesOf(v view, filters []filter) ([]place, []*Reason) {
	var reasons []*Reason
	places := make([]place, 0, len(v.Nodes))
	for _, n := range v.Nodes {
		places = append(places, newPlace(n))
		if reason := firstReason(filters, &places[len(places)-1]); reason != nil {
			places, reasons = places[:len(places)-1], append(reasons, reason)
		}
	}
	return places, reasons
}

// newPlace has a bound that keeps sums over nodes from overflowing, whatever a node says that it has.
func newPlace(n *Node) place { return place{node: n, slots: math.MaxInt32} }

func (j *Job) filters(v view) []filter {
	var filters []filter
	for i := range plugins {
		if f := plugins[i].filter(j, v); f != nil {
			filters = append(filters, f)
		}
	}
	return filters
}

func firstReason(filters []filter, p *place) *Reason {
	for _, f := range filters {
		if reason := f(p); reason != nil {
			return reason
		}
	}
	return nil
}

func (j *Job) states(v view) []state {
	var states []state
	for i := range coupledPlugins {
		if s := coupledPlugins[i].state(j, v); s != nil {
			states = append(states, s)
		}
	}
	return states
}

// trials put the Pods on nodes one after the other, several times.
type trials struct {
	job    *Job
	places []place
	states []state
	wanted int64
}

// order in which one trial prefers nodes.
type order func(a, b *place) bool

// orders that differ as much as they can: which one the scheduler takes isn't known.
var orders = []order{
	func(a, b *place) bool { return a.slots > b.slots },
	func(a, b *place) bool { return a.slots < b.slots },
	func(_, _ *place) bool { return false },
	func(a, b *place) bool { return a.node.Object.Name > b.node.Object.Name },
}

// least tries several orders of nodes, and each choice of the first Pod that binds the others.
func (t *trials) least() filling {
	least := t.try(nil, orders[0])
	try := func(first *place, prefer order) {
		if least.pods == 0 {
			return
		}
		if tried := t.try(first, prefer); tried.pods < least.pods {
			least = tried
		}
	}
	// With a single constraint of topology spread, or devices of nodes, all orders come to the same.
	if t.wanted > 1 && len(t.job.spread)+len(t.job.affinity)+len(t.job.antiAffinity)+len(t.job.spec.Volumes) > 1 {
		for _, prefer := range orders[1:] {
			try(nil, prefer)
		}
	}
	for _, first := range t.firsts() {
		try(first, orders[0])
	}
	return least
}

// firsts has a place of each group of domains that the first Pod may choose for all of the Job.
func (t *trials) firsts() []*place {
	if t.wanted == 1 || !slices.ContainsFunc(t.states, choosesFirst) {
		return nil
	}
	var firsts []*place
	seen := map[string]bool{}
	for i := range t.places {
		var values []string
		for _, term := range t.job.affinity {
			values = append(values, t.places[i].node.Object.Labels[term.key])
		}
		group := strings.Join(values, "/")
		if !seen[group] && reasonOf(t.states, &t.places[i]) == nil {
			seen[group] = true
			firsts = append(firsts, &t.places[i])
		}
	}
	return firsts
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

// try puts one Pod after the other on the node that is preferred among those that take it. The
// first goes to its place, if there is one.
func (t *trials) try(first *place, prefer order) filling {
	places := slices.Clone(t.places)
	states := make([]state, len(t.states))
	for i, s := range t.states {
		states[i] = s.clone()
	}
	var f filling
	for f.pods < t.wanted {
		best, reasons := choose(places, states, prefer)
		if first != nil && f.pods == 0 {
			best = slices.IndexFunc(places, func(p place) bool { return p.node == first.node })
		}
		if best < 0 {
			f.reasons = reasons
			return f
		}
		places[best].slots--
		for _, s := range states {
			s.add(&places[best])
		}
		f.pods++
	}
	return f
}

func choose(places []place, states []state, prefer order) (int, []*Reason) {
	best := -1
	var reasons []*Reason
	for i := range places {
		p := &places[i]
		if p.slots <= 0 {
			reasons = append(reasons, p.limit)
			continue
		}
		if reason := reasonOf(states, p); reason != nil {
			reasons = append(reasons, reason)
			continue
		}
		if best < 0 || prefer(p, &places[best]) {
			best = i
		}
	}
	return best, reasons
}
