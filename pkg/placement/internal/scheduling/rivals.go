package scheduling

import (
	"cmp"
	"math"
	"slices"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

// rival is another member of a group, as one of them sees it.
type rival struct {
	*attendant
	// apart: one of its Pods leaves no room on its node.
	apart bool
	// devices, volumes: both take some, perhaps of one pool.
	devices, volumes bool
	// barred is where its Pods keep the member away, beside what they take of nodes.
	barred []barrier
	// counts is by how many of the member's constraints of topology spread each of its Pods counts as
	// one of the member's own.
	counts int64
	// near: the member must be near such Pods.
	near bool
	// takes is what one of its Pods takes of each of the member's requests.
	takes []int64
}

// barrier is a topology in whose domains a rival's Pods keep the member away.
type barrier struct {
	topology
	// reached are the domains in which the rival may be.
	reached []bool
	// sure: they do for sure.
	sure bool
	// pods that may be in different domains.
	pods int64
	// cost is how many of them it takes, by domain; nil: one.
	cost []int64
}

func (c *contest) rivalOf(m *attendant) rival {
	c.work.spend(len(c.ports)*len(m.ports), capacity.PortsField)
	r := rival{
		attendant: m,
		apart:     conflict(c.ports, m.ports),
		devices:   c.trial != nil && m.trial != nil,
		volumes:   c.view.share(c.Job, m.Job),
		near:      c.view.nears(c.Job, m.Job),
		takes:     make([]int64, len(c.insufficient)),
	}
	r.apart = r.apart || r.devices || r.volumes
	for i := range c.insufficient {
		r.takes[i] = 1
		if i > 0 {
			unit := m.shape.Unit()
			r.takes[i] = unit.Get(c.insufficient[i].name)
		}
	}
	c.barByTerms(&r, c.antiAffinity, m.Job)
	c.barByTerms(&r, m.antiAffinity, c.Job)
	c.barBySpread(&r)
	return r
}

// barByTerms adds the terms of anti-affinity that select a Job's Pods, at least perhaps.
func (c *contest) barByTerms(r *rival, terms []term, of *Job) {
	for i := range terms {
		matches := c.view.matches(&terms[i], of, antiAffinityField)
		if matches == no {
			continue
		}
		b := c.barrier(r, c.view.topologies.by(terms[i].key, c.work, antiAffinityField))
		b.sure = matches == yes
		if r.confined(terms[i].key) {
			b.pods = 1
		}
		r.barred = append(r.barred, b)
	}
}

// barBySpread adds the constraints of topology spread that count the rival's Pods.
func (c *contest) barBySpread(r *rival) {
	if c.spread == nil || c.namespace != r.namespace {
		return
	}
	for i := range c.Job.spread {
		of, counts := &c.Job.spread[i], &c.spread.counts[i]
		c.work.spend(of.selector.work, spreadField)
		switch {
		case of.selector.Empty() || !of.selector.Matches(r.labels): // see countsMates
		case of.counted():
			r.counts++
		default:
			b := c.barrier(r, counts.topology)
			b.cost = make([]int64, counts.size)
			for domain := range b.cost {
				b.cost[domain] = max(of.maxSkew+counts.least-counts.hindering[domain]+1, 1)
			}
			r.barred = append(r.barred, b)
		}
	}
}

func (c *contest) barrier(r *rival, t topology) barrier {
	b := barrier{topology: t, reached: make([]bool, t.size), pods: r.wanted}
	c.work.spend(len(t.at)/checkWork, antiAffinityField)
	for n, domain := range t.at {
		if domain != undomained && r.most[n] > 0 {
			b.reached[domain] = true
		}
	}
	return b
}

// confined reports whether all Pods of a rival must be in one domain of a label.
func (r *rival) confined(key string) bool {
	if !slices.ContainsFunc(r.affinity, func(t term) bool { return t.key == key }) {
		return false
	}
	return r.nearby.bySelf && r.nearby.choosesFirst() && !r.nearby.byMates
}

// counted is how many Pods of rivals the member's constraints of topology spread count.
func (c *contest) counted() (pods int64) {
	for i := range c.rivals {
		pods += c.rivals[i].counts * c.rivals[i].wanted
	}
	return pods
}

// takings bound what rivals' Pods can take of the slots of places.
type takings struct {
	// fixed is taken of each place that some rival's Pod is on. fixes: of some place, some is.
	fixed []float64
	fixes bool
	// each is taken by each Pod of each rival, by place.
	each [][]float64
}

func newTakings(places, rivals int) takings {
	amounts := make([]float64, places*(1+rivals))
	t := takings{fixed: amounts[:places], each: make([][]float64, rivals)}
	for k := range t.each {
		t.each[k] = amounts[places*(1+k) : places*(2+k)]
	}
	return t
}

func (c *contest) findTakings() {
	c.takes[0], c.takes[1] = newTakings(len(c.places), len(c.rivals)), newTakings(len(c.places), len(c.rivals))
	for i := range c.places {
		if p := &c.places[i]; p.slots > 0 {
			c.work.spend(takingWork*(1+len(c.rivals)*len(c.insufficient)), requestsField)
			for q := range c.insufficient {
				c.take(i, q)
			}
			for k := range c.rivals {
				if r := &c.rivals[k]; r.apart && r.most[p.index] > 0 {
					c.takes[0].each[k][i], c.takes[1].each[k][i] = float64(p.slots), float64(p.slots)
				}
			}
		}
	}
}

// take bounds what the rivals take of one resource on a place. The member's slots need slots ×
// amount; beyond what is to spare, each further amount takes one slot, and the first begins it:
//
//	taken(x) = ⌈(x - spare) / amount⌉, where x is the sum of what the rivals' Pods request
//
// None of the bounds may be one of the Pods of one rival alone: two rivals that take nothing, each
// by itself, may take a slot together.
func (c *contest) take(i, q int) {
	p, amount := &c.places[i], c.insufficient[q].amount
	if c.view.byDevices(p.node, c.insufficient[q].name) {
		return
	}
	spare := c.view.free(p.node).Get(c.insufficient[q].name) - p.slots*amount
	most, unit := int64(0), amount
	for k := range c.rivals {
		r := &c.rivals[k]
		if taken := r.most[p.index] * r.takes[q]; taken > 0 {
			most, unit = most+taken, gcd(unit, r.takes[q])
		}
	}
	s := steps{amount: amount, first: (spare/unit + 1) * unit}
	if most < s.first {
		return
	}
	s.most = min(p.slots, 1+(most-s.first)/amount)
	byPod, bySum := 0.0, 0.0
	for k := range c.rivals {
		pods := float64(c.rivals[k].most[p.index])
		byPod, bySum = byPod+pods*s.byPod(c.rivals[k].takes[q]), bySum+pods*s.bySum(c.rivals[k].takes[q])
	}
	linear := s.byPod
	if bySum < byPod {
		linear = s.bySum
	}
	stepped, fixed := linear, 0.0
	if s.first < amount {
		stepped, fixed = func(x int64) float64 { return float64(x) / float64(amount) }, 1-float64(s.first)/float64(amount)
	}
	c.takes[1].fixed[i], c.takes[1].fixes = max(c.takes[1].fixed[i], fixed), c.takes[1].fixes || fixed > 0
	for k := range c.rivals {
		if x := c.rivals[k].takes[q]; x > 0 && c.rivals[k].most[p.index] > 0 {
			c.takes[0].each[k][i] = max(c.takes[0].each[k][i], linear(x))
			c.takes[1].each[k][i] = max(c.takes[1].each[k][i], stepped(x))
		}
	}
}

// steps are the amounts at which one slot more is taken: the first one, and each amount after that,
// up to a number of slots.
type steps struct{ amount, first, most int64 }

// byPod bounds what a Pod takes that requests x, because rounding up each request gives no less
// than rounding up their sum.
func (s *steps) byPod(x int64) float64 { return float64(min((x+s.amount-1)/s.amount, s.most)) }

// bySum bounds it by the share that it has in reaching some step: t slots are taken by requests
// that sum up to the step t, or by one that is as large. So each may stand for the largest t ×
// min(1, x / step(t)).
func (s *steps) bySum(x int64) float64 {
	reached := int64(0)
	if x >= s.first {
		reached = min(1+(x-s.first)/s.amount, s.most)
	}
	largest := float64(reached)
	for _, t := range []int64{reached + 1, s.most} {
		if t <= s.most && t > reached {
			largest = max(largest, float64(t)*float64(x)/float64(s.first+(t-1)*s.amount))
		}
	}
	return largest
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// taken is what the rivals' Pods take of some places at most. Those of some rivals never are there.
func (c *contest) taken(places []int, but func(*rival) bool) int64 {
	least := c.takenBy(&c.takes[0], places, but)
	if c.takes[1].fixes { // otherwise both are the same
		least = min(least, c.takenBy(&c.takes[1], places, but))
	}
	return int64(math.Floor(least + 1e-6))
}

func (c *contest) takenBy(by *takings, places []int, but func(*rival) bool) float64 {
	sum, pods := 0.0, int64(0)
	for k := range c.rivals {
		r := &c.rivals[k]
		if but != nil && but(r) {
			continue
		}
		pods += r.wanted
		c.options = c.options[:0]
		for _, i := range places {
			if each := by.each[k][i]; each > 0 {
				p := &c.places[i]
				c.options = append(c.options, option{each, min(float64(r.most[p.index]), float64(p.slots)/each)})
			}
		}
		sum += largest(c.options, r.wanted)
		for b := range r.barred {
			sum += largest(c.behind(&r.barred[b], places), r.barred[b].pods)
		}
		c.work.spend(optionWork*(len(c.options)+len(places)*len(r.barred)), requestsField)
	}
	if !by.fixes {
		return sum
	}
	c.options = c.options[:0]
	for _, i := range places {
		if by.fixed[i] > 0 {
			c.options = append(c.options, option{by.fixed[i], 1})
		}
	}
	c.work.spend(optionWork*len(places), requestsField)
	return sum + largest(c.options, pods)
}

// behind a barrier: what the slots of each domain are worth for each Pod that keeps the member
// away.
func (c *contest) behind(b *barrier, places []int) []option {
	slots := make(map[int32]int64)
	for _, i := range places {
		if domain := b.at[c.places[i].index]; domain != undomained && b.reached[domain] {
			slots[domain] += c.places[i].slots
		}
	}
	var options []option
	for domain, worth := range slots {
		o := option{float64(worth), 1}
		if b.cost != nil {
			o = option{o.each / float64(b.cost[domain]), float64(b.cost[domain])}
		}
		options = append(options, o)
	}
	return options
}

// option for a number of Pods, each of which takes as much.
type option struct{ each, pods float64 }

// largest is the most that a number of Pods can take.
func largest(options []option, pods int64) (sum float64) {
	slices.SortFunc(options, func(a, b option) int { return cmp.Compare(b.each, a.each) })
	left := float64(pods)
	for _, o := range options {
		if left <= 0 {
			break
		}
		some := min(o.pods, left)
		sum, left = sum+some*o.each, left-some
	}
	return sum
}
