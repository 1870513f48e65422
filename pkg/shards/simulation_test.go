package shards

import (
	"container/heap"
	"maps"
	"math"
	"math/rand/v2"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/intervals"
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

// scenario is a Job and its workers.
type scenario struct {
	completions, parallelism, limit int
	workers                         []simSpec
	// exponential: the durations of Pods have a long tail; else they vary by half.
	exponential bool
	mean        float64
	seed        uint64
	// churn is the time between two drains, of a random worker each, which comes back at once.
	churn float64
}

type simSpec struct {
	slots   int
	speed   float64
	elastic bool
	// joins, lost and drained say when.
	joins, lost, drained float64
}

// durations are those of each index's Pod on a worker of speed 1.
func (s scenario) durations() []float64 {
	random := rand.New(rand.NewPCG(s.seed, 1))
	all := make([]float64, s.completions)
	for i := range all {
		all[i] = s.mean * (0.5 + random.Float64())
		if s.exponential {
			all[i] = s.mean * min(random.ExpFloat64(), 5)
		}
	}
	return all
}

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
}

// simView is what the hub sees of a mirror.
type simView struct {
	asked, held, done intervals.Set
	count             int
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
			t.Fatalf("it doesn't end: %v", sim.placement.Annotations())
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
		w.view = simView{w.asked, w.asked.Union(w.started.Minus(w.done)), w.done, w.count, w.exists && s.isEnded(w)}
	}
	s.job.Status.CompletedIndexes = s.completed.String()
	next := Divide(s.job, s.placement, s.rooms(), s.limit)
	if before, after := s.placement.Annotations(), next.Annotations(); !maps.Equal(before, after) {
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
	if again := w.seen.done.Minus(shard.Indexes).Minus(s.completed); len(again) > 0 {
		s.t.Fatalf("%s has run %q of other shards", w.name, again)
	}
	s.completed = s.completed.Union(w.seen.done)
	if w.exists && !Indexed(s.job) {
		shard.Succeeded = max(shard.Succeeded, int32(w.seen.count))
	}
	switch {
	case w.lost > 0 && s.now >= w.lost+simLost, shard.Stopping && s.now >= w.stops+2*simTick:
		s.placement = s.placement.Without(w.name)
		w.exists, w.view, w.seen = false, simView{}, simView{}
		if s.churn > 0 {
			w.gone, w.drained, w.started, w.done = false, 0, nil, nil
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
			Idle: !w.exists || w.seen.ended, Held: w.seen.held, Known: w.exists && sameSet(w.seen.asked, w.asked),
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
		w.asked, w.number, w.part, w.amount = asked, shard.Number, int(shard.Parallelism), shard.String()
		w.view = simView{count: w.view.count, done: w.view.done}
	case w.elastic && !sameSet(asked, w.asked), w.part != int(shard.Parallelism):
		s.mirrorWrites++
		w.asked, w.part = asked, int(shard.Parallelism)
	}
}

// run lets the worker's Pods run until now. An index that it has started is its own to the end.
func (s *simulation) run(w *simWorker) {
	if !w.exists || w.gone || s.now < w.starts {
		return
	}
	s.start(w, max(w.starts, s.now-simTick))
	for len(w.running) > 0 && w.running[0].end <= s.now {
		pod := heap.Pop(&w.running).(simPod)
		w.count++
		if Indexed(s.job) {
			w.done = w.done.Union(intervals.Of(pod.index))
		}
		s.start(w, pod.end)
	}
}

func (s *simulation) start(w *simWorker, at float64) {
	free := min(w.part, w.slots) - len(w.running)
	if free <= 0 {
		return
	}
	var next []int
	if Indexed(s.job) {
		next = w.asked.Minus(w.started).First(free)
		w.started = w.started.Union(intervals.Of(next...))
	} else {
		for i := range min(free, w.number-w.count-len(w.running)) {
			next = append(next, (w.count+len(w.running)+i+7919*int(w.name[0]))%s.completions)
		}
	}
	for _, index := range next {
		heap.Push(&w.running, simPod{index, at + s.pods[index]/w.speed})
	}
}

// oneCluster is the makespan of one cluster with all the slots, which are lost and drained at the
// same times.
func (s scenario) oneCluster() float64 {
	pods := s.durations()
	var queue []int
	for i := range pods {
		queue = append(queue, i)
	}
	type slot struct{ free, ends, speed float64 }
	var slots []slot
	for _, w := range s.workers {
		ends := math.Inf(1)
		if w.lost > 0 {
			ends = w.lost
		}
		if w.drained > 0 {
			ends = w.drained
		}
		for range w.slots {
			slots = append(slots, slot{simCreate + w.joins, ends, w.speed})
		}
	}
	last := 0.0
	for len(queue) > 0 {
		best := 0
		for i := range slots {
			if slots[i].free < slots[best].free {
				best = i
			}
		}
		pick := &slots[best]
		end := pick.free + pods[queue[0]]/pick.speed
		if end > pick.ends {
			pick.free = math.Inf(1)
			continue
		}
		pick.free = end
		queue, last = queue[1:], max(last, end)
	}
	return last
}
