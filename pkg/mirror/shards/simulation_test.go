package shards

import (
	"container/heap"
	"maps"
	"math"
	"math/rand/v2"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/mirror/intervals"
)

// Times of the simulation, in seconds.
const (
	// simTick is how often the hub reads and writes; what it reads is that old.
	simTick = 1.0
	// simCreate is from the end of a mirror to the first Pod of the one that replaces it.
	simCreate = 1.5
	// simStop is how long a mirror takes that is suspended.
	simStop = 2.0
	// simLost is how long the hub waits for a worker that is lost.
	simLost = 20.0
)

// simulation is a run of a scenario with Divide.
type simulation struct {
	t *testing.T
	scenario
	pods      []float64
	job       *batchv1.Job
	completed intervals.Set
	placement Placement
	all       []*simWorker
	now       float64
	// hubWrites counts placements; mirrorWrites what a mirror is told; created the mirrors.
	hubWrites, mirrorWrites, created, longest int
}

// simWorker is a worker with at most one mirror.
type simWorker struct {
	simSpec
	name string
	// exists: there is a mirror, which starts at the time starts, with these indexes or this
	// number.
	exists  bool
	starts  float64
	part    int
	asked   intervals.Set
	todo    intervals.Set
	number  int
	amount  string
	running podHeap
	started intervals.Set
	done    intervals.Set
	count   int
	// view is what the worker shows, seen what the hub has read of it: what it showed a tick ago.
	view, seen simView
	stops      float64
	gone       bool
	// version counts the changes of asked.
	version int
	// read is what the hub has read of done.
	read intervals.Set
}

// simView is what the hub sees of a mirror.
type simView struct {
	asked, held, done intervals.Set
	count, version    int
	ended             bool
}

type simPod struct {
	index int
	end   float64
}

type podHeap []simPod

func (h podHeap) Len() int           { return len(h) }
func (h podHeap) Less(i, j int) bool { return h[i].end < h[j].end }
func (h podHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *podHeap) Push(x any)        { *h = append(*h, x.(simPod)) }
func (h *podHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

func simulate(t *testing.T, s scenario, indexed bool) *simulation {
	sim := &simulation{t: t, scenario: s, pods: s.durations(), job: &batchv1.Job{Spec: batchv1.JobSpec{
		Completions: ptr.To(int32(s.completions)), Parallelism: ptr.To(int32(s.parallelism)),
	}}}
	if indexed {
		sim.job.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	}
	for i, spec := range s.workers {
		sim.all = append(sim.all, &simWorker{simSpec: spec, name: string(rune('a' + i))})
	}
	random := rand.New(rand.NewPCG(s.seed, 2))
	for !sim.isComplete() {
		if s.churn > 0 && math.Mod(sim.now, s.churn) < simTick {
			sim.all[random.IntN(len(sim.all))].drained = sim.now + simTick
		}
		sim.tick()
		if sim.now > 1e5 {
			t.Fatalf("it doesn't end: %v", sim.placement.Kept())
		}
	}
	return sim
}

func (s *simulation) succeeded() int {
	n := s.completed.Len() + int(s.placement.Settled.Succeeded)
	for _, shard := range s.placement.Shards {
		n += int(shard.Succeeded)
	}
	return n
}

func (s *simulation) isComplete() bool { return s.succeeded() >= s.completions }

// tick is one round: the workers run, the hub reads what they showed a tick ago, and divides.
func (s *simulation) tick() {
	s.now += simTick
	for _, w := range s.all {
		w.seen = w.view
		s.read(w)
		if w.lost > 0 && s.now >= w.lost {
			w.running, w.gone = nil, true
			continue
		}
		s.run(w)
		w.view = simView{w.asked, w.asked.Union(w.started.Minus(w.done)), w.done, w.count, w.version, w.exists && s.isEnded(w)}
	}
	s.job.Status.CompletedIndexes = s.completed.String()
	next := Divide(s.job, s.placement, s.rooms(), s.limit)
	if before, after := s.placement.Kept(), next.Kept(); !maps.Equal(before, after) {
		s.hubWrites++
		for _, text := range after {
			s.longest = max(s.longest, len(text))
		}
	}
	s.placement = next
	for _, w := range s.all {
		s.write(w)
	}
}

// isEnded: a mirror that is fixed ends with its shard.
func (s *simulation) isEnded(w *simWorker) bool {
	return !w.elastic && len(w.running) == 0 && s.now >= w.starts && (w.asked.SubsetOf(w.done) && w.count >= w.number)
}

// read brings a worker's progress to the hub, and ends what has to.
func (s *simulation) read(w *simWorker) {
	i := -1
	for at := range s.placement.Shards {
		if s.placement.Shards[at].Worker == w.name {
			i = at
		}
	}
	if i < 0 {
		return
	}
	shard := &s.placement.Shards[i]
	fresh := w.seen.done.Minus(w.read)
	if twice := fresh.Intersect(s.completed); len(twice) > 0 || !fresh.SubsetOf(shard.Indexes) {
		s.t.Fatalf("%s has completed %q, of which %q not for the first time, in shard %q", w.name, fresh, twice, shard.Indexes)
	}
	s.completed, w.read = s.completed.Union(fresh), w.seen.done
	if w.exists && !Indexed(s.job) {
		shard.Succeeded = max(shard.Succeeded, int32(w.seen.count))
	}
	switch {
	case w.lost > 0 && s.now >= w.lost+simLost, shard.Stopping && s.now >= w.stops+2*simTick:
		s.placement = s.placement.Without(w.name)
		w.exists, w.view, w.seen = false, simView{}, simView{}
		if s.churn > 0 {
			w.gone, w.drained, w.started, w.done, w.read = false, 0, nil, nil, nil
		}
	case w.drained > 0 && s.now >= w.drained && !shard.Stopping:
		shard.Stopping = true
		w.stops = s.now + simStop
		w.running, w.gone = nil, true
		w.started = w.started.Intersect(w.done)
	}
}

func (s *simulation) rooms() []Room {
	var rooms []Room
	for _, w := range s.all {
		rooms = append(rooms, Room{
			Worker: w.name, Pods: int64(w.slots), Open: !w.gone && s.now >= w.joins, Elastic: w.elastic,
			Idle: !w.exists || w.seen.ended, Held: w.seen.held, Known: w.exists && w.seen.version == w.version,
		})
	}
	return rooms
}

func sameSet(a, b intervals.Set) bool { return a.SubsetOf(b) && b.SubsetOf(a) }

// write makes the mirror follow the shard.
func (s *simulation) write(w *simWorker) {
	shard, ok := s.placement.In(w.name)
	if !ok || w.gone {
		return
	}
	asked := shard.Indexes.Minus(intervals.ParseLenient(shard.Returning, intervals.NoLimit))
	switch {
	case !w.exists, !w.elastic && w.amount != shard.String():
		w.exists, w.starts = true, s.now+simCreate
		s.created++
		w.number, w.amount = shard.Number, shard.String()
		w.ask(asked, shard.Parallelism)
		w.view = simView{count: w.view.count, done: w.view.done}
	case w.elastic && !sameSet(asked, w.asked), w.part != int(shard.Parallelism):
		s.mirrorWrites++
		w.ask(asked, shard.Parallelism)
	}
}

func (w *simWorker) ask(indexes intervals.Set, parallelism int32) {
	w.asked, w.part = indexes, int(parallelism)
	w.todo = w.asked.Minus(w.started)
	w.version++
}

// run lets the worker's Pods run until now. An index that it has started is its own to the end.
func (s *simulation) run(w *simWorker) {
	if !w.exists || w.gone || s.now < w.starts {
		return
	}
	started := s.start(w, max(w.starts, s.now-simTick))
	var done []int
	for len(w.running) > 0 && w.running[0].end <= s.now {
		pod := heap.Pop(&w.running).(simPod)
		w.count++
		done = append(done, pod.index)
		started = append(started, s.start(w, pod.end)...)
	}
	if Indexed(s.job) {
		w.done = w.done.Union(intervals.Of(done...))
		w.started = w.started.Union(intervals.Of(started...))
	}
}

// start starts Pods of the lowest indexes in the free slots.
func (s *simulation) start(w *simWorker, at float64) []int {
	free := max(min(w.part, w.slots)-len(w.running), 0)
	var next []int
	if Indexed(s.job) {
		low, rest := w.todo.Split(free)
		next, w.todo = low.First(free), rest
	} else {
		for i := range max(min(free, w.number-w.count-len(w.running)), 0) {
			next = append(next, (w.count+len(w.running)+i+7919*int(w.name[0]))%s.completions)
		}
	}
	for _, index := range next {
		heap.Push(&w.running, simPod{index, at + s.pods[index]/w.speed})
	}
	return next
}
