package scheduling

import (
	"math"
	"slices"
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
	filters, states := j.allFilters(v), j.states(v)
	trial := v.trial(j)
	if trial != nil && !trial.Coupled() {
		f := j.put(v, append(filters, deviceSlots(trial)), states, wanted, true)
		if trial.Broken() == "" || v.moment == Ever {
			return f
		}
	}
	if trial != nil { // coupled by an error on some node, too
		states = append(states, &devicesState{v.eachNode(), trial.Clone()})
	}
	return j.put(v, filters, states, wanted, false)
}

// put counts how many of the wanted Pods can be put on nodes. All nodes are asked if it matters
// what those say that aren't needed.
func (j *Job) put(v view, filters []filter, states []state, wanted int64, all bool) filling {
	if len(states) == 0 {
		return sum(v, filters, wanted, all)
	}
	places, reasons := placesOf(v, filters)
	if inAnyOrder(v, places, states) >= wanted {
		return filling{pods: wanted}
	}
	if reason := failing(v, places, states); reason != nil {
		return filling{reasons: append(slices.Repeat([]*Reason{reason}, len(places)), reasons...)}
	}
	if together(places, states, wanted) {
		return filling{pods: wanted}
	}
	f := newTrials(j, places, states, wanted, v.work).fill()
	f.reasons = append(f.reasons, reasons...)
	return f
}

// failing is why the scheduler gives up the Job's Pods; nil if it doesn't.
func failing(v view, places []place, states []state) *Reason {
	for _, s := range states {
		if d, is := s.(*devicesState); is {
			return d.fails(v, places, states)
		}
	}
	return nil
}

// sum adds up the slots of nodes, until there are enough, or of all.
func sum(v view, filters []filter, wanted int64, all bool) filling {
	var f filling
	var p place
	for i := range v.Nodes {
		p = newPlace(v, i)
		if reason := firstReason(filters, &p); reason != nil {
			f.reasons = append(f.reasons, reason)
			continue
		}
		f.reasons = append(f.reasons, p.limit)
		if f.pods += p.slots; f.pods >= wanted && !all {
			break
		}
	}
	if f.pods >= wanted {
		return filling{pods: wanted}
	}
	return f
}

// placesOf are the nodes that pass all plugins that look at a node alone, and the reasons of the
// others.
func placesOf(v view, filters []filter) ([]place, []*Reason) {
	var reasons []*Reason
	places := make([]place, 0, len(v.Nodes))
	for i := range v.Nodes {
		places = append(places, newPlace(v, i))
		if reason := firstReason(filters, &places[len(places)-1]); reason != nil {
			places, reasons = places[:len(places)-1], append(reasons, reason)
		}
	}
	return places, reasons
}

// newPlace has a bound that keeps sums over nodes from overflowing, whatever a node says that it
// has.
func newPlace(v view, i int) place { return place{node: v.Nodes[i], index: i, slots: math.MaxInt32} }

// allFilters are those of the plugins that look at a node alone.
func (j *Job) allFilters(v view) []filter {
	return slices.Insert(j.filters(v), 0, j.suits(v))
}

func (j *Job) filters(v view) []filter {
	var filters []filter
	for i := range fitting {
		if f := fitting[i].filter(j, v); f != nil {
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
