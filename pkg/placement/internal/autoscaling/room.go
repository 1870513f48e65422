package autoscaling

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

const (
	// maxNodes bounds the nodes that are made up for one answer.
	maxNodes = 500
	// maxDemandWork bounds the comparisons of Pods that wait with what may be added: some 10 ms. What
	// is behind those that use it up isn't asked for.
	maxDemandWork = 300_000
)

// Room is what may still be added. Immutable.
type Room struct {
	growth *Growth
	// groups finds those of nodes. in are the nodes that there are, and existing is what they have.
	groups   *grouping
	in       map[*corev1.Node]counted
	existing used
	// asked are nodes for Pods that wait, which have room for more.
	asked []*capacity.Node
	used
}

// counted is a node that there is, with its group; -1: none.
type counted struct {
	group int
	whole capacity.Resources
}

// used is what there is already, or was asked for.
type used struct {
	all     amounts
	byGroup []usedGroup
	// made counts the nodes that were made up, to name them.
	made int
}

type usedGroup struct {
	nodes int64
	all   amounts
}

// NewRoom takes the nodes that there are, and the Pods that none of them has room for: nodes were,
// or will be, asked for these first.
func NewRoom(g *Growth, nodes []*capacity.Node, demands []capacity.Demand) *Room {
	return newRoom(g, g.grouping()).With(nodes, demands)
}

func newRoom(g *Growth, groups *grouping) *Room {
	none := used{all: amounts{}, byGroup: make([]usedGroup, len(g.Groups))}
	for i := range none.byGroup {
		if len(g.Groups[i].Limits) > 0 {
			none.byGroup[i].all = amounts{}
		}
	}
	return &Room{growth: g, groups: groups, existing: none, used: none}
}

// With is the same beside other nodes, and other Pods. Of nodes that were there before, nothing is
// added up again.
func (r *Room) With(nodes []*capacity.Node, demands []capacity.Demand) *Room {
	before := r
	r = &Room{growth: r.growth, groups: r.groups, in: make(map[*corev1.Node]counted, len(nodes)), existing: r.existing.clone()}
	for _, n := range nodes {
		c, is := before.in[n.Object]
		if !is {
			c = counted{r.groups.of(n.Object), n.Allocatable}
			r.existing.count(r.growth, c.group, &c.whole, 1)
		}
		r.in[n.Object] = c
	}
	for n, c := range before.in {
		if _, stays := r.in[n]; !stays {
			r.existing.count(r.growth, c.group, &c.whole, -1)
		}
	}
	r.used = r.existing.clone()
	work := 0
	for i := range demands[:min(len(demands), capacity.MaxDemands)] {
		if work += r.askingWork(demands[i].Shape); work > maxDemandWork {
			break
		}
		r.ask(demands[i].Shape, demands[i].Pods)
	}
	return r
}

// Empty is the room of a worker that has no nodes yet.
func (r *Room) Empty() *Room { return newRoom(r.growth, r.groups) }

// Nodes are those that some Pods of a Shape could have, beside the nodes that there are: what is
// left of those that were asked for, and as many more as the limits allow and the Pods need.
func (r *Room) Nodes(shape *capacity.Shape, pods int64) []*capacity.Node {
	u := r.clone()
	nodes := slices.Clone(r.asked)
	for suiting := r.growth.suiting(shape); len(suiting) > 0; {
		left := suiting[:0]
		for _, s := range suiting {
			if s.room >= pods || len(nodes) >= maxNodes || u.more(r.growth, &s) == 0 {
				continue // it stays so
			}
			s.room += s.slots
			u.count(r.growth, s.group, &s.Whole, 1)
			nodes, left = append(nodes, u.make(&s)), append(left, s)
		}
		suiting = left
	}
	return nodes
}

// All are one node of each template, for what keeps a Job from all of them.
func (r *Room) All() []*capacity.Node {
	var u used
	var nodes []*capacity.Node
	for i := range r.growth.Groups {
		for t := range r.growth.Groups[i].Templates {
			nodes = append(nodes, u.make(&candidate{Template: &r.growth.Groups[i].Templates[t], group: i}))
		}
	}
	return nodes[:min(len(nodes), maxNodes)]
}

// IsPaused reports whether there are groups of nodes for Pods of a Shape, and the autoscaler adds
// to none of them for now.
func (r *Room) IsPaused(shape *capacity.Shape) bool {
	suiting := r.growth.suiting(shape)
	return len(suiting) > 0 && !slices.ContainsFunc(suiting, func(c candidate) bool { return !r.growth.isPaused(&c) })
}

// candidate is a template on whose nodes Pods of a Shape may be.
type candidate struct {
	*Template
	group int
	// slots is how many of them a new node has room for, and room how many those that were added have.
	slots, room int64
}

// askingWork is what it takes to ask for nodes for Pods of a Shape, in plain comparisons.
func (r *Room) askingWork(shape *capacity.Shape) (work int) {
	for _, n := range r.asked {
		work += shape.WorkOn(n.Object)
	}
	for i := range r.growth.Groups {
		g := &r.growth.Groups[i]
		for t := range g.Templates {
			work += shape.WorkOn(g.Templates[t].Object) + len(g.Limits) + len(r.growth.Limits)
		}
	}
	return work
}

func (g *Growth) suiting(shape *capacity.Shape) []candidate {
	var suiting []candidate
	for i := range g.Groups {
		for t := range g.Groups[i].Templates {
			template := &g.Groups[i].Templates[t]
			if slots := shape.Slots(template.Object, &template.Allocatable); slots > 0 {
				suiting = append(suiting, candidate{Template: template, group: i, slots: slots})
			}
		}
	}
	return suiting
}

func (g *Growth) isPaused(c *candidate) bool { return c.Paused || g.Groups[c.group].Paused }

// ask counts the nodes for Pods that wait. Only one that has room for more is made up.
func (r *Room) ask(shape *capacity.Shape, pods int64) {
	for i, n := range r.asked {
		if pods == 0 {
			return
		}
		if taken := min(shape.Slots(n.Object, &n.Free), pods); taken > 0 {
			r.asked[i] = taking(n, shape, taken)
			pods -= taken
		}
	}
	suiting := r.growth.suiting(shape)
	for i := range suiting {
		s := &suiting[i]
		full := min(pods/s.slots, r.more(r.growth, s))
		r.count(r.growth, s.group, &s.Whole, full)
		pods -= full * s.slots
		if rest := min(pods, s.slots-1); rest > 0 && r.more(r.growth, s) > 0 && len(r.asked) < maxNodes {
			r.count(r.growth, s.group, &s.Whole, 1)
			r.asked = append(r.asked, taking(r.make(s), shape, rest))
			pods -= rest
		}
	}
}

// taking is a made-up node with some Pods on it.
func taking(n *capacity.Node, shape *capacity.Shape, pods int64) *capacity.Node {
	taken := *n
	taken.Free = n.Free.Add(shape.Unit(), -pods)
	return &taken
}

// more is how many nodes of a template may still be added.
func (u *used) more(g *Growth, c *candidate) int64 {
	group, there := &g.Groups[c.group], &u.byGroup[c.group]
	if g.isPaused(c) {
		return 0
	}
	return min(
		max(group.Nodes-there.nodes, 0), group.Limits.more(there.all, &c.Whole), g.Limits.more(u.all, &c.Whole),
	)
}

func (u *used) count(g *Growth, group int, whole *capacity.Resources, nodes int64) {
	g.Limits.count(u.all, whole, nodes)
	if group >= 0 {
		there := &u.byGroup[group]
		there.nodes += nodes
		g.Groups[group].Limits.count(there.all, whole, nodes)
	}
}

func (u *used) clone() used {
	c := used{maps.Clone(u.all), slices.Clone(u.byGroup), u.made}
	for i := range c.byGroup {
		c.byGroup[i].all = maps.Clone(c.byGroup[i].all)
	}
	return c
}

// make makes up a node. No real one has such a name.
func (u *used) make(c *candidate) *capacity.Node {
	u.made++
	return c.nodeOf(fmt.Sprintf("%s/%d", c.Object.Name, u.made))
}
