package scheduling

import (
	"math"
	"slices"
)

// bound is what one constraint allows in the domains of its topology.
type bound struct {
	topology
	// atLeast is how many more Pods each domain takes, wherever others are.
	atLeast []int64
	// rising is the constraint of topology spread that allows more in a domain when the domain with
	// the fewest Pods gets more; nil if nothing does.
	rising *spreadCounts
	of     *constraint
}

// unlimited is more than all nodes together have slots for.
const unlimited = math.MaxInt64

// inAnyOrder is a number of Pods that all find nodes, in whatever order the scheduler puts them
// there. So no order need be tried for as many. It is zero where no such number is known.
//
// The proof: suppose that no node takes another Pod, and look at the domain of the outer bound that
// has the fewest Pods. The outer bound allows one more Pod there. So something else is full: each
// domain of the inner bound within it has as many new Pods as the inner bound allows, or no slots
// left. Call the sum of these the room of the outer domain. The domain with the fewest Pods has its
// room full. So no domain has fewer Pods than the one that would have the fewest if all rooms were
// full. Each other domain has its room full, too, or maxSkew Pods more than that.
func inAnyOrder(v view, places []place, states []state) int64 {
	if len(places) == 0 {
		return 0
	}
	outer, inner := v.boundsOf(states)
	if outer == nil {
		return 0
	}
	slots, within := make([]int64, inner.size), make([]int32, inner.size)
	for i := range places {
		p := &places[i]
		domain, in := inner.at[p.index], outer.at[p.index]
		if domain == undomained || in == undomained {
			continue
		}
		if slots[domain] > 0 && within[domain] != in {
			return 0 // one bound isn't within the other
		}
		slots[domain] += p.slots
		within[domain] = in
	}
	rooms := make([]int64, outer.size)
	for domain := range slots {
		if slots[domain] > 0 {
			rooms[within[domain]] += min(slots[domain], inner.atLeast[domain])
		}
	}
	return outer.fill(rooms, rooms)
}

// fill sums up the rooms of an outer bound's domains, as far as their Pods can't be too many: what
// is left for sure tells how many Pods the domain with the fewest has.
func (b *bound) fill(rooms, left []int64) int64 {
	fewest := int64(notIncluded)
	if b.rising != nil {
		fewest = b.rising.fewest(b.of, left)
	}
	pods := int64(0)
	for domain, room := range rooms {
		if fewest < notIncluded {
			room = min(room, max(fewest+b.of.maxSkew-b.rising.hindering[domain], 0))
		}
		pods += room
	}
	return pods
}

// fewest is what settle would find if the rooms were full.
func (c *spreadCounts) fewest(of *constraint, rooms []int64) int64 {
	full := *c
	full.helping = make([]int64, len(c.helping))
	for domain, count := range c.helping {
		full.helping[domain] = min(count+rooms[domain], notIncluded)
	}
	full.settle(of)
	return full.least
}

// together reports whether all Pods find a place, wherever the first one is: at least with that
// one.
func together(places []place, states []state, wanted int64) bool {
	if slices.ContainsFunc(states, func(s state) bool { return !s.stays() }) {
		return false
	}
	some := false
	for i := range places {
		p := &places[i]
		if small := p.slots < wanted; small || !some {
			takes := reasonOf(states, p) == nil
			if small && takes {
				return false
			}
			some = some || takes
		}
	}
	return some
}

// boundsOf divides the bounds of all states into two: the outer one, which rises, has few domains;
// the inner one stands for all others. They are nil if some aren't known, or are of too many
// topologies.
func (v view) boundsOf(states []state) (outer, inner *bound) {
	var bounds []bound
	for _, s := range states {
		more, known := s.bounds()
		if !known {
			return nil, nil
		}
		bounds = append(bounds, more...)
	}
	for i := range bounds {
		if b := &bounds[i]; b.rising != nil && (outer == nil || b.size < outer.size) {
			outer = b
		}
	}
	for i := range bounds {
		switch b := &bounds[i]; {
		case b == outer:
		case inner == nil:
			inner = b
		case &inner.at[0] != &b.at[0]:
			return nil, nil
		default:
			inner.narrow(b)
		}
	}
	if outer == nil {
		outer = &bound{topology: topology{at: make([]int32, len(v.Nodes)), size: 1}}
	}
	if inner == nil {
		inner = &bound{topology: outer.topology, atLeast: slices.Repeat([]int64{unlimited}, outer.size)}
	}
	return outer, inner
}

// narrow allows what another bound of the topology allows, too.
func (b *bound) narrow(o *bound) {
	for domain := range b.atLeast {
		b.atLeast[domain] = min(b.atLeast[domain], o.atLeast[domain])
	}
}
