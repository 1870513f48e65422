package waiting

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/placement"
)

// End is when the Pods of a Job are expected to have ended.
type End struct {
	Job types.NamespacedName
	Expected
	// Unit is what each of them takes, and Pods how many are on a node, by its name.
	Unit placement.Resources
	Pods iter.Seq2[string, int64]
}

// class has what is known before what nobody can say.
func (e *Expected) class() int {
	if e.Basis == ByNothing {
		return 1
	}
	return 0
}

// before is the order in which ends are gone through.
func (e End) before(o End) int { return cmp.Or(cmp.Compare(e.class(), o.class()), e.At.Compare(o.At)) }

// room is what one worker has, as it is during one walk. What was computed is kept.
type room struct {
	worker  string
	workers Workers
	nodes   []*placement.Node
	looks   *looks
	byName  map[string]int
	// free and all are how many Pods of a Shape fit, by its key: now, and if nothing ran.
	free, all map[string]int64
	fits      map[string]fit
}

// fit is when a Job fits in a room for the first time.
type fit struct {
	// ever: it does, at the latest when all Pods that end by themselves have ended.
	ever bool
	// at is when, on which basis; zero: not even a guess.
	at    time.Time
	basis Basis
	// spare is how many more Pods of the Job would fit then.
	spare int64
	// lacks is how many Pods don't fit by then although they must; zero if there is a time.
	lacks int64
}

// slots is how many Pods of a Shape fit now.
func (r *room) slots(shape *placement.Shape) int64 {
	return r.count(r.free, shape, func(node *placement.Node) *placement.Resources { return &node.Free })
}

// idle is how many Pods of a Shape would fit if nothing ran that ends by itself.
func (r *room) idle(shape *placement.Shape) int64 {
	return r.count(r.all, shape, func(node *placement.Node) *placement.Resources { return &node.Idle })
}

// has reports whether what Pods of a Shape need is there; false, too, if that isn't known.
func (r *room) has(need *Need, shape *placement.Shape) bool {
	switch {
	case need.Lacks == Other || need.Pods <= 0:
		return false
	case need.Lacks == Nodes:
		return r.idle(shape) >= need.Pods
	default:
		return r.slots(shape) >= need.Pods
	}
}

// count adds up how many Pods fit in what each node has, unless that is known.
func (r *room) count(known map[string]int64, shape *placement.Shape, of func(*placement.Node) *placement.Resources) int64 {
	n, is := known[shape.Key()]
	if !is {
		for _, node := range r.nodesFor(shape) {
			n += shape.Slots(node.Object, of(node))
		}
		known[shape.Key()] = n
	}
	return n
}

// nodesFor are the nodes that there are, and then those that may be added for Pods of a Shape: they
// have room as soon as they're asked for.
func (r *room) nodesFor(shape *placement.Shape) []*placement.Node {
	added := r.workers.Added(r.worker, shape)
	nodes, work := slices.Concat(r.nodes, added), len(added)*LooksPerAdded
	for _, node := range nodes {
		work += shape.WorkOn(node.Object)
	}
	r.looks.add(work)
	return nodes
}

// fit computes when a Job fits, by what is expected to end.
func (r *room) fit(job *Job, now time.Time, expected func() []End) fit {
	need := job.need(r.worker)
	key := strconv.FormatInt(need, 10) + job.Shape.Key()
	f, known := r.fits[key]
	if known {
		return f
	}
	f = r.sweep(job.Shape, need, now, expected)
	if !r.looks.over() { // or it was cut short for this namespace, and not for the others
		r.fits[key] = f
	}
	return f
}

// sweep goes through the expected ends until enough Pods fit. What nobody can say is only asked for
// if the rest isn't enough.
func (r *room) sweep(shape *placement.Shape, need int64, now time.Time, expected func() []End) fit {
	nodes := r.nodesFor(shape)
	free, on := make([]placement.Resources, len(nodes)), make([]int64, len(nodes))
	var total, idle int64
	for i, node := range nodes {
		free[i], on[i] = node.Free, shape.Slots(node.Object, &node.Free)
		total += on[i]
		idle += shape.Slots(node.Object, &node.Idle)
	}
	f := fit{ever: idle >= need, at: now, basis: ByDeadline}
	var ends []End
	if total < need {
		ends = expected()
	}
	for i := 0; total < need && i < len(ends) && !r.looks.over(); {
		if ends[i].At.After(f.at) {
			f.at = ends[i].At
		}
		// All that have ended by then.
		for class := ends[i].class(); i < len(ends) && ends[i].class() == class && !ends[i].At.After(f.at); i++ {
			total += r.end(&ends[i], shape, free, on)
			f.basis = max(f.basis, ends[i].Basis)
		}
	}
	f.spare = total - need
	if f.spare < 0 { // what else must end isn't known to
		f.at, f.basis, f.lacks, f.spare = time.Time{}, ByNothing, -f.spare, max(idle-need, 0)
	}
	return f
}

// end frees what Pods take that have ended, and returns how many more Pods of a Shape fit by that.
func (r *room) end(of *End, shape *placement.Shape, free []placement.Resources, on []int64) (more int64) {
	position, work := r.positions(), 0
	for node, pods := range of.Pods {
		n, is := position[node]
		if !is {
			work++
			continue // it came after the others were looked at
		}
		work += shape.WorkOn(r.nodes[n].Object)
		free[n] = shape.With(free[n], &of.Unit, pods)
		more -= on[n]
		on[n] = shape.Slots(r.nodes[n].Object, &free[n])
		more += on[n]
	}
	r.looks.add(work)
	return more
}

// positions of the worker's nodes, by their names.
func (r *room) positions() map[string]int {
	if r.byName == nil {
		r.byName = make(map[string]int, len(r.nodes))
		for i, node := range r.nodes {
			r.byName[node.Object.Name] = i
		}
	}
	return r.byName
}
