package scheduling

import (
	"math"
	"slices"
)

// gathering is a group in one view of a worker.
type gathering struct {
	view
	members []attendant
}

// attendant is a member of a group in a view.
type attendant struct {
	admitted
	wanted int64
	alone  *Answer
	// places are the nodes that suit it, and refused the reasons of the others.
	places  []place
	refused []*Reason
	// most is how many of its Pods each node takes at most, whatever others are there.
	most []int64
	// trial gives devices; nil if none are needed.
	trial DeviceTrial
	// nearby is its affinity to others; nil if there is none.
	nearby *affinityState
	// waits: it must be near Pods of which none comes first.
	waits bool
}

func (t *team) at(s *Snapshot, moment Moment, b *budget) *gathering {
	g := &gathering{view: view{s, moment, b}}
	for i := range t.members {
		m := &t.members[i]
		g.members = append(g.members, attendant{admitted: m.snapshot.admit(m.job, b), wanted: m.wanted, alone: &m.alone})
	}
	for i := range g.members {
		g.members[i].attend(g.view)
	}
	g.findWaiting()
	return g
}

// findWaiting finds the members that wait for each other, or for one that does: a Pod whose
// affinity nothing satisfies that runs, nor its own Job's Pods, comes after one of a mate's.
func (g *gathering) findWaiting() {
	left := 0
	for i := range g.members {
		m := &g.members[i]
		s, is := interPodAffinity(m.Job, g.view).(*affinityState)
		if !is {
			continue
		}
		m.nearby = s
		if m.waits = len(s.wanted) > 0 && !s.bySelf && !s.bound && !s.freed; m.waits {
			left++
		}
	}
	for before := -1; left > 0 && left != before; {
		before = left
		for i := range g.members {
			m := &g.members[i]
			if m.waits && slices.ContainsFunc(g.members, func(o attendant) bool { return !o.waits && g.nears(m.Job, o.Job) }) {
				m.waits = false
				left--
			}
		}
	}
}

func (m *attendant) attend(v view) {
	filters := m.allFilters(v)
	if m.trial = v.trial(m.Job); m.trial != nil && !m.trial.Coupled() {
		filters = append(filters, deviceSlots(m.trial))
	}
	v.work.spend(attendWork*len(v.Nodes), requestsField)
	m.places, m.refused = placesOf(v, filters)
	m.most = make([]int64, len(v.Nodes))
	for i := range m.places {
		p := &m.places[i]
		m.most[p.index] = min(p.slots, m.wanted)
		if m.shape.OnePerNode() {
			m.most[p.index] = min(m.most[p.index], 1)
		}
	}
}

// room is how many Pods fit by what each node alone has, wanted or not.
func (m *attendant) room() (pods int64) {
	for i := range m.places {
		pods += m.places[i].slots
	}
	return pods
}

// reasons of the nodes that take none of its Pods.
func (m *attendant) reasons() []Count {
	if m.alone.Verdict == FitsLater {
		return m.alone.Reasons
	}
	f := filling{reasons: m.refused}
	return f.counts()
}

// fit is how many of a member's Pods find nodes now, wherever all Pods of the others are, or would
// be.
func (g *gathering) fit(i int) int64 {
	m := &g.members[i]
	wanted := min(m.wanted, g.admittedBeside(i))
	if wanted <= 0 {
		return 0
	}
	c := g.contestOf(i, wanted)
	switch {
	case c.isFree():
		return m.fill(g.view, wanted).pods
	case m.waits, c.isLost():
		return 0
	case c.affinity != nil && c.affinity.choosesFirst() && (wanted > 1 || !c.affinity.bySelf || c.follows()):
		return min(c.inOneDomain(), wanted)
	}
	pods, known := c.count(c.all(), nil)
	if !known {
		pods = c.tried()
	}
	return min(pods, wanted)
}

// contest is between a member of a group and the others, its rivals, for room on nodes.
type contest struct {
	*attendant
	view   view
	wanted int64
	states []state
	// affinity and spread are among the states; nil if they aren't.
	affinity *affinityState
	spread   *spreadState
	// places have slots that are wanted.
	places []place
	rivals []rival
	// takes is what the rivals can take of each place, in one of two ways to bound it: of the first,
	// none of it is for places that some rival is on, however many of its Pods are there.
	takes   [2]takings
	options []option // for reuse
	// outer and inner bounds, where they are known.
	outer, inner *bound
}

func (g *gathering) contestOf(i int, wanted int64) *contest {
	m := &g.members[i]
	c := &contest{attendant: m, view: g.view, wanted: wanted, states: m.states(g.view), places: slices.Clone(m.places)}
	if m.trial != nil && m.trial.Coupled() {
		c.states = append(c.states, &devicesState{g.eachNode(), m.trial.Clone()})
	}
	for s := range c.states {
		switch state := c.states[s].(type) {
		case *affinityState:
			c.affinity = state
			state.bound = state.bound || state.freed // where a mate's will be isn't known
		case *spreadState:
			c.spread = state
		}
	}
	for k := range g.members {
		if k != i {
			c.rivals = append(c.rivals, c.rivalOf(&g.members[k]))
		}
	}
	c.bound()
	return c
}

// bound finds the bounds, and leaves no more slots than are wanted, and than they allow.
func (c *contest) bound() {
	others, limits := slices.Clone(c.states), []bound{}
	for i, s := range others {
		if a, is := s.(*affinityState); is {
			apart := *a
			apart.wanted = nil
			others[i] = &apart
		}
		more, _ := others[i].bounds()
		limits = append(limits, more...)
	}
	c.outer, c.inner = c.view.boundsOf(others)
	mustBeNear := c.affinity != nil && !c.affinity.choosesFirst()
	for i := range c.places {
		p := &c.places[i]
		p.slots = min(p.slots, c.wanted)
		for b := range limits {
			limits[b].limit(p)
		}
		if mustBeNear && !c.affinity.nearWanted(p.index) {
			p.slots = 0
		}
	}
	c.findTakings()
}

// limit leaves no more slots than a bound allows that doesn't rise.
func (b *bound) limit(p *place) {
	if domain := b.at[p.index]; domain != undomained && b.rising == nil {
		p.slots = min(p.slots, b.atLeast[domain])
	}
}

func (c *contest) all() []int {
	all := make([]int, len(c.places))
	for i := range all {
		all[i] = i
	}
	return all
}

// isFree reports whether no rival is in the member's way.
func (c *contest) isFree() bool {
	return !c.follows() && c.taken(c.all(), nil) == 0 && c.counted() == 0
}

// follows reports whether the member must be near some rival.
func (c *contest) follows() bool {
	return slices.ContainsFunc(c.rivals, func(r rival) bool { return r.near })
}

// isLost: nothing is known of what rivals leave.
func (c *contest) isLost() bool {
	coupled := slices.ContainsFunc(c.states, func(s state) bool {
		switch s.(type) {
		case *affinityState, *spreadState:
			return false
		default:
			return true
		}
	})
	return coupled && slices.ContainsFunc(c.rivals, func(r rival) bool { return r.devices || r.volumes })
}

// count is a number of Pods that find places among some, wherever the rivals are; false: none is
// known. The proof is that of inAnyOrder, with what rivals may take off each room: the rivals share
// what they take between all domains, or take as much of each of them.
func (c *contest) count(places []int, but func(*rival) bool) (pods int64, known bool) {
	if c.outer == nil {
		return 0, false
	}
	c.view.work.spend((c.outer.size+c.inner.size)/domainsPerWork, affinityField)
	d, known := c.divide(places)
	if !known {
		return 0, false
	}
	left := make([]int64, c.outer.size)
	for domain := range left {
		if left[domain] = d.rooms[domain]; left[domain] > 0 && c.outer.rising != nil {
			left[domain] = max(d.rooms[domain]-c.taken(d.outer[domain], but)-c.counted(), 0)
		}
	}
	pods = c.outer.fill(d.rooms, left) - c.taken(places, but) - c.counted()
	if pods >= c.wanted {
		return pods, true
	}
	each := make([]int64, c.outer.size)
	for domain, some := range d.inner {
		if len(some) > 0 {
			each[d.within[domain]] += max(min(d.slots[domain]-c.taken(some, but), c.inner.atLeast[domain])-c.counted(), 0)
		}
	}
	for domain := range each {
		left[domain] = max(left[domain], each[domain])
	}
	return max(pods, c.outer.fill(each, left)-c.counted()*int64(c.outer.size), 0), true
}

// domained are places by the domains of a contest's bounds.
type domained struct {
	// outer and inner are the places of each domain.
	outer, inner [][]int
	// slots and within are by inner domain: it's in that outer one.
	slots  []int64
	within []int32
	// rooms are by outer domain.
	rooms []int64
}

func (c *contest) divide(places []int) (d domained, known bool) {
	d = domained{
		outer: make([][]int, c.outer.size), inner: make([][]int, c.inner.size),
		slots: make([]int64, c.inner.size), within: make([]int32, c.inner.size), rooms: make([]int64, c.outer.size),
	}
	for _, i := range places {
		p := &c.places[i]
		domain, in := c.inner.at[p.index], c.outer.at[p.index]
		if domain == undomained || in == undomained || p.slots == 0 {
			continue
		}
		if d.slots[domain] > 0 && d.within[domain] != in {
			return d, false
		}
		d.slots[domain] += p.slots
		d.within[domain] = in
		d.outer[in], d.inner[domain] = append(d.outer[in], i), append(d.inner[domain], i)
	}
	for domain, slots := range d.slots {
		if slots > 0 {
			d.rooms[d.within[domain]] += min(slots, c.inner.atLeast[domain])
		}
	}
	return d, true
}

// inOneDomain is how many Pods fit where the first one of them, or of a rival that the member must
// be near, decides where all will be: in the domain with the least room.
func (c *contest) inOneDomain() int64 {
	d := newDivision(len(c.view.Nodes))
	for i := range c.affinity.wanted {
		d.divide(c.affinity.wanted[i].topology, nil)
	}
	followed, lost := c.near(d)
	if lost {
		return 0
	}
	of := make([][]int, d.groups)
	for i := range c.places {
		if p := &c.places[i]; c.affinity.labelled(p.index) {
			of[d.of[p.index]] = append(of[d.of[p.index]], i)
		}
	}
	var but func(*rival) bool
	if !c.follows() {
		but = func(r *rival) bool { return c.keeping(r) != nil }
	}
	least, candidates := int64(math.MaxInt64), int64(0)
	for domain, places := range of {
		takes := c.affinity.bySelf && slices.ContainsFunc(places, func(i int) bool {
			return c.places[i].slots > 0 && reasonOf(c.states, &c.places[i]) == nil
		})
		if !takes && !followed[domain] {
			continue
		}
		pods, known := c.count(places, but)
		if !known {
			return 0
		}
		least, candidates = min(least, pods), candidates+1
	}
	if candidates == 0 || but != nil && candidates <= c.kept() {
		return 0
	}
	return least
}

// near are the domains in which a rival may be that the member must be near; lost: such a rival may
// be where no domain is, and the member isn't near itself.
func (c *contest) near(d *division) (domains []bool, lost bool) {
	domains = make([]bool, d.groups)
	for k := range c.rivals {
		r := &c.rivals[k]
		if !r.near {
			continue
		}
		for n, most := range r.most {
			switch {
			case most == 0:
			case c.affinity.labelled(n):
				domains[d.of[n]] = true
			case !c.affinity.bySelf:
				return domains, true
			}
		}
	}
	return domains, false
}

// keeping is what keeps a rival and the member apart in those domains of which the member chooses
// one: a rival that came first leaves others to choose, and one that comes later finds another. It
// is nil if nothing does.
func (c *contest) keeping(r *rival) *barrier {
	for i := range r.barred {
		b := &r.barred[i]
		if b.sure && slices.ContainsFunc(c.affinity.wanted, func(t termState) bool { return sameTopology(t.topology, b.topology) }) {
			return b
		}
	}
	return nil
}

// kept is how many domains such rivals may keep the member from.
func (c *contest) kept() (domains int64) {
	for k := range c.rivals {
		if b := c.keeping(&c.rivals[k]); b != nil {
			domains += b.pods
		}
	}
	return domains
}

func sameTopology(a, b topology) bool {
	return len(a.at) > 0 && len(b.at) > 0 && &a.at[0] == &b.at[0]
}

// tried is how many Pods fit when they're tried one after the other, and rivals have taken all that
// they can of each node.
func (c *contest) tried() int64 {
	if c.counted() > 0 {
		return 0
	}
	var places []place
	for i := range c.places {
		p := c.places[i]
		if p.slots -= c.taken([]int{i}, nil); p.slots > 0 {
			places = append(places, p)
		}
	}
	if len(places) == 0 {
		return 0
	}
	if pods := inAnyOrder(c.view, places, c.states); pods >= c.wanted {
		return pods
	}
	return newTrials(c.Job, places, c.states, c.wanted, c.work).fill().pods
}
