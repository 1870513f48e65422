package checker

import (
	"maps"
	"math"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/mirror/intervals"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// homes are the indexes of a hub Job in each worker that it is placed on. A Job in one worker is a
// Job with one shard, of all indexes; shards of a Job without indexes have none.
type homes map[string]intervals.Set

// move is that a worker's shard was taken away from it. What moves while the worker keeps its shard
// is given back by the worker first, so that nothing excuses what goes wrong with that.
type move struct {
	at   time.Duration
	from string
	// left are the indexes of the shard that were neither complete nor failed, as the hub knew.
	left intervals.Set
}

// tookAway reports whether what a Pod does may be left to do elsewhere since the move.
func (m move) tookAway(p *pod) bool {
	return m.from == p.where && (p.index < 0 || m.left.Has(p.index))
}

// placementOf returns the placement of a hub Job as it is written: of one that isn't placed as
// shards, with no state.
func placementOf(j *batchv1.Job) (shards.Placement, error) {
	if shards.IsPlaced(j) {
		written := *j
		// else Read lowers parts that are too many
		written.Spec.Parallelism = ptr.To[int32](math.MaxInt32)
		return shards.Read(&written)
	}
	var p shards.Placement
	for _, worker := range shards.WorkersOf(j) {
		whole := shards.Amount{Indexes: intervals.Range(0, intervals.NoLimit)}
		p.Shards = append(p.Shards, shards.Shard{Worker: worker, Amount: whole})
	}
	return p, nil
}

// observeHomes follows the placement.
func (c *Checker) observeHomes(r *record, e Event) {
	p, err := placementOf(e.Job)
	if err != nil {
		c.violate(e.At, Divided, r, "%v", err)
		return
	}
	c.checkParts(r, e, p)
	is := homes{}
	for _, s := range p.Shards {
		is[s.Worker] = s.Indexes
	}
	for _, worker := range slices.Sorted(maps.Keys(r.homes)) {
		c.observeLeaving(r, e, worker, is)
	}
	for _, worker := range slices.Sorted(maps.Keys(is)) {
		was, had := r.homes[worker]
		if r.ended != nil && (!had || !is[worker].SubsetOf(was)) {
			c.violate(e.At, Placed, r, "placed on %s after its end", worker)
		}
	}
	if !maps.EqualFunc(r.homes, is, func(a, b intervals.Set) bool { return slices.Equal(a, b) }) {
		r.silence.progresses(e.At)
	}
	r.homes = is
}

// observeLeaving looks for what has left a worker. What had completed or failed isn't missed there.
func (c *Checker) observeLeaving(r *record, e Event, worker string, is homes) {
	stays, keeps := is[worker]
	left := r.homes[worker].Minus(stays).Minus(settledIndexes(e.Job))
	if keeps && left.Len() == 0 {
		return
	}
	if !keeps {
		r.moves = append(r.moves, move{at: e.At, from: worker, left: left})
	}
	if c.isolated(e.At) && !c.isAskedFor(r, e, worker) {
		c.violate(e.At, Isolated, r, "moved from %s to %q while all workers are out of touch", worker, slices.Sorted(maps.Keys(is)))
	}
}

// isAskedFor reports whether a Job was moved because its user or an admin wants it elsewhere: no
// judgement of its worker. The manager needs a while to find all workers out of touch.
func (c *Checker) isAskedFor(r *record, e Event, worker string) bool {
	was, is := hubstate.Get(r.hub, hubstate.PlacedFor), hubstate.Get(e.Job, hubstate.PlacedFor)
	return was != is || c.drained(worker, e.At)
}

// checkParts holds that shards aren't given more Pods at once than the Job may have. When its user
// lowers parallelism, the parts follow; they don't rise in between.
func (c *Checker) checkParts(r *record, e Event, p shards.Placement) {
	may, had := ptr.Deref(e.Job.Spec.Parallelism, 1), 0
	if r.hub != nil && r.hub.UID == e.Job.UID {
		may = max(may, ptr.Deref(r.hub.Spec.Parallelism, 1))
		if before, err := placementOf(r.hub); err == nil {
			had = before.Parallelism()
		}
	}
	if sum := p.Parallelism(); sum > int(may) && sum > had {
		c.violate(e.At, Divided, r, "the parts of parallelism add up to %d, and the Job's is %d", sum, may)
	}
}

// settledIndexes are complete or have failed, as the hub knows.
func settledIndexes(j *batchv1.Job) intervals.Set {
	return intervals.ParseLenient(j.Status.CompletedIndexes, intervals.NoLimit).
		Union(intervals.ParseLenient(ptr.Deref(j.Status.FailedIndexes, ""), intervals.NoLimit))
}
