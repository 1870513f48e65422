package shards

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/mirror/intervals"
)

// world is a Job and its workers, of which anything may happen between two divisions.
type world struct {
	t         *rapid.T
	job       *batchv1.Job
	completed intervals.Set
	placement Placement
	rooms     []Room
	limit     int
}

// The laws of Divide, whatever happens between two divisions.
func TestDivideLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(map[string]func(*rapid.T){
			"completes":   func(t *rapid.T) { w.t = t; w.completes() },
			"room":        func(t *rapid.T) { w.t = t; w.roomChanges() },
			"held":        func(t *rapid.T) { w.t = t; w.heldChanges() },
			"parallelism": func(t *rapid.T) { w.job.Spec.Parallelism = ptr.To(int32(rapid.IntRange(0, 40).Draw(t, "parallelism"))) },
			"completions": func(t *rapid.T) { w.t = t; w.completionsChange() },
			"limit":       func(t *rapid.T) { w.limit = rapid.IntRange(1, 5).Draw(t, "limit") },
			"lost":        func(t *rapid.T) { w.t = t; w.placement = w.placement.Without(w.worker()) },
			"stops":       func(t *rapid.T) { w.t = t; w.stops() },
			"":            func(t *rapid.T) { w.t = t; w.divide() },
		})
	})
}

func newWorld(t *rapid.T) *world {
	n := rapid.IntRange(1, 60).Draw(t, "completions")
	job := &batchv1.Job{Spec: batchv1.JobSpec{Completions: ptr.To(int32(n)), Parallelism: ptr.To(int32(rapid.IntRange(1, 40).Draw(t, "parallelism")))}}
	if rapid.Bool().Draw(t, "indexed") {
		job.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	}
	w := &world{t: t, job: job, limit: rapid.IntRange(1, 5).Draw(t, "limit")}
	for i := range 5 {
		w.rooms = append(w.rooms, w.room(fmt.Sprintf("w%d", i)))
	}
	return w
}

func (w *world) room(name string) Room {
	return Room{
		Worker:  name,
		Pods:    rapid.Int64Range(0, 20).Draw(w.t, "pods"),
		Open:    rapid.Bool().Draw(w.t, "open"),
		Elastic: rapid.Bool().Draw(w.t, "elastic"),
		Idle:    rapid.Bool().Draw(w.t, "idle"),
		Known:   rapid.Bool().Draw(w.t, "known"),
		Held:    intervals.Of(rapid.SliceOf(rapid.IntRange(0, 70)).Draw(w.t, "held")...),
	}
}

func (w *world) worker() string {
	return fmt.Sprintf("w%d", rapid.IntRange(0, 4).Draw(w.t, "worker"))
}

func (w *world) roomChanges() {
	name := w.worker()
	w.rooms = slices.DeleteFunc(w.rooms, func(r Room) bool { return r.Worker == name })
	if rapid.IntRange(0, 3).Draw(w.t, "away") > 0 {
		at := rapid.IntRange(0, len(w.rooms)).Draw(w.t, "place")
		w.rooms = slices.Insert(w.rooms, at, w.room(name))
	}
}

// heldChanges: a worker has taken note of what it is asked for.
func (w *world) heldChanges() {
	for i := range w.rooms {
		if s, ok := w.placement.In(w.rooms[i].Worker); ok {
			w.rooms[i].Held = s.Indexes.Minus(intervals.ParseLenient(s.Returning, 100))
		}
	}
}

func (w *world) completes() {
	i := rapid.IntRange(0, max(len(w.placement.Shards)-1, 0)).Draw(w.t, "shard")
	if len(w.placement.Shards) == 0 {
		return
	}
	s := &w.placement.Shards[i]
	n := rapid.IntRange(0, 10).Draw(w.t, "n")
	if Indexed(w.job) {
		left := Remaining(w.job, *s).Indexes
		low, _ := left.Split(min(n, left.Len()))
		w.completed = w.completed.Union(low)
		w.show()
		return
	}
	s.Succeeded = min(s.Succeeded+int32(n), int32(s.Number))
}

func (w *world) show() {
	w.completed = w.completed.Below(completions(w.job))
	w.job.Status.CompletedIndexes = w.completed.String()
}

func (w *world) completionsChange() {
	if Indexed(w.job) {
		w.job.Spec.Completions = ptr.To(int32(rapid.IntRange(1, 60).Draw(w.t, "completions")))
		w.show()
	}
}

func (w *world) stops() {
	if i := rapid.IntRange(0, 4).Draw(w.t, "shard"); i < len(w.placement.Shards) {
		w.placement.Shards[i].Stopping = true
	}
}

// divide checks the laws of one division.
func (w *world) divide() {
	before := w.placement
	frozen := fmt.Sprintf("%+v", before)
	after := Divide(w.job, before, w.rooms, w.limit)
	if fmt.Sprintf("%+v", before) != frozen {
		w.t.Fatal("the present placement was changed")
	}
	w.checkWhole(after)
	for _, s := range after.Shards {
		w.checkPart(before, s)
	}
	for _, s := range before.Shards {
		w.checkStays(s, after)
	}
	if len(after.Shards) > max(w.limit, len(before.Shards)) {
		w.t.Fatalf("%d shards, limit %d", len(after.Shards), w.limit)
	}
	w.checkSettles(after)
	w.placement = after
}

// checkSettles: two divisions are enough while nothing happens; where a worker has given something
// back at once, as many more as it takes to follow that.
func (w *world) checkSettles(p Placement) {
	log := []hubstate.Changes{p.Kept()}
	for calls, may := 1, 2; ; calls++ {
		if w.givesBack(p) {
			may = 5
		}
		p = Divide(w.job, p, w.rooms, w.limit)
		log = append(log, p.Kept())
		if reflect.DeepEqual(log[calls], log[calls-1]) {
			return
		}
		if calls >= may {
			w.t.Fatalf("no fixed point: %v\nrooms %+v", log, w.rooms)
		}
	}
}

func (w *world) givesBack(p Placement) bool {
	return slices.ContainsFunc(w.rooms, func(r Room) bool {
		s, ok := p.In(r.Worker)
		return ok && r.Known && len(intervals.ParseLenient(s.Returning, 100).Minus(r.Held)) > 0
	})
}

// checkWhole: the shards are disjoint, nothing is lost, and the parts add up to the whole at most.
func (w *world) checkWhole(p Placement) {
	parts, number, done := 0, 0, int(p.Settled.Succeeded)
	all := p.Unassigned(w.job).Indexes.Union(w.completed)
	var in intervals.Set
	for _, s := range p.Shards {
		if len(in.Intersect(s.Indexes)) > 0 {
			w.t.Fatalf("%s and others share %q", s.Worker, in.Intersect(s.Indexes))
		}
		in = in.Union(s.Indexes)
		parts += int(s.Parallelism)
		number += Remaining(w.job, s).Number
		done += int(s.Succeeded)
	}
	if parts > int(*w.job.Spec.Parallelism) {
		w.t.Fatalf("the parts add up to %d of %d", parts, *w.job.Spec.Parallelism)
	}
	n := completions(w.job)
	if Indexed(w.job) {
		if !intervals.Range(0, n).SubsetOf(all.Union(in)) {
			w.t.Fatalf("%q is lost", intervals.Range(0, n).Minus(all.Union(in)))
		}
	} else if got := number + done + p.Unassigned(w.job).Number; got != n {
		w.t.Fatalf("%d completions of %d: %+v", got, n, p)
	}
	read := w.job.DeepCopy()
	hubstate.Set(read, p.Kept())
	if back, err := Read(read); err != nil || !reflect.DeepEqual(back.Kept(), p.Kept()) {
		w.t.Fatalf("%+v is read as %+v: %v", p, back, err)
	}
}

// checkPart: a part exceeds neither the room nor, if it is the user's limit that falls, itself.
func (w *world) checkPart(before Placement, s Shard) {
	old, had := before.In(s.Worker)
	i := slices.IndexFunc(w.rooms, func(r Room) bool { return r.Worker == s.Worker })
	if s.Parallelism > old.Parallelism && (i < 0 || int64(s.Parallelism) > w.rooms[i].Pods || !w.rooms[i].Open || s.Stopping) {
		w.t.Fatalf("%+v grows from %d without room", s, old.Parallelism)
	}
	if !had && (s.Parallelism == 0 || s.Len() == 0 || !w.rooms[i].Idle) {
		w.t.Fatalf("new shard %+v", s)
	}
}

// checkStays: what leaves a shard, or comes to it, does so by the rules.
func (w *world) checkStays(old Shard, after Placement) {
	i := slices.IndexFunc(w.rooms, func(r Room) bool { return r.Worker == old.Worker })
	room := Room{}
	if i >= 0 {
		room = w.rooms[i]
	}
	elastic := room.Elastic && Indexed(w.job)
	left := Remaining(w.job, old)
	s, stays := after.In(old.Worker)
	if !stays {
		if elastic && room.Known { // what the worker has given back isn't the shard's any more
			asked := intervals.ParseLenient(old.Returning, intervals.NoLimit)
			left.Indexes = left.Indexes.Minus(asked.Minus(room.Held))
		}
		if left.Len() > 0 || old.Stopping || !elastic && !room.Idle {
			w.t.Fatalf("%+v is dropped", old)
		}
		return
	}
	replaced := !elastic && room.Idle && room.Open && left.Len() == 0 && !old.Stopping
	switch {
	case old.Stopping && (s.String() != old.String() || s.Returning != old.Returning):
		w.t.Fatalf("%+v stops, and becomes %+v", old, s)
	case !elastic && !replaced && s.String() != old.String():
		w.t.Fatalf("fixed shard %+v becomes %+v", old, s)
	case replaced && !Indexed(w.job) && s.Number < old.Number:
		w.t.Fatalf("number falls from %+v to %+v", old, s)
	}
	if elastic {
		gone := left.Indexes.Minus(s.Indexes)
		may := intervals.ParseLenient(old.Returning, 100).Minus(room.Held)
		if len(gone) > 0 && (!room.Known || !gone.SubsetOf(may)) {
			w.t.Fatalf("%q leaves %+v", gone.Minus(may), old)
		}
		if !room.Open && len(s.Indexes.Minus(old.Indexes)) > 0 {
			w.t.Fatalf("%+v takes nothing, and gets %q", old, s.Indexes.Minus(old.Indexes))
		}
	}
	spans := sumOf(w.placement.Shards) <= int(*w.job.Spec.Parallelism)
	if spans && int(s.Parallelism) < min(int(old.Parallelism), left.Len()) {
		w.t.Fatalf("part of %+v falls to %d with %d left", old, s.Parallelism, left.Len())
	}
}

func sumOf(all []Shard) int {
	sum := 0
	for _, s := range all {
		sum += int(s.Parallelism)
	}
	return sum
}
