package waiting_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/line/waiting"
	"github.com/jobferry/jobferry/pkg/placement"
	. "github.com/jobferry/jobferry/pkg/placement/placementtest"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// simJob is a Job that is submitted to a fleet at some time and runs for a while.
type simJob struct {
	waiting.Job
	arrives, runs time.Duration
	start, end    time.Time
	// promised is the time of its first reservation; zero: it had none.
	promised time.Time
	on       *simWorker
	nodes    []int // of its Pods
}

func newSimJob(n int, priority int32, arrives time.Duration, pods int64, cpu string) *simJob {
	name := fmt.Sprintf("job-%05d", n)
	return &simJob{arrives: arrives, Job: waiting.Job{
		Key: types.NamespacedName{Namespace: "team", Name: name}, UID: types.UID(name), Priority: priority, Created: noon.Add(arrives),
		Shape: shapeOf(cpu), Pods: pods,
	}}
}

var shapes = map[string]*placement.Shape{}

func shapeOf(cpu string) *placement.Shape {
	if shapes[cpu] == nil {
		shapes[cpu] = placement.ShapeOf(&NewJob("shape").Requests("cpu", cpu).Obj().Spec.Template)
	}
	return shapes[cpu]
}

// simWorker is a worker, whose scheduler puts Pods on nodes at random.
type simWorker struct {
	name    string
	nodes   []*placement.Node
	running []*simJob
	// ran is how long the Jobs ran that have ended.
	ran waiting.Runtimes
}

func newSimWorker(name string, nodes int, cpu string) *simWorker {
	w := &simWorker{name: name}
	for i := range nodes {
		object := NewNode(fmt.Sprintf("n%03d", i)).Has("cpu", cpu, "pods", "110").Obj()
		all := ResourcesOf(object.Status.Allocatable)
		w.nodes = append(w.nodes, &placement.Node{Object: object, Allocatable: all, Idle: all, Free: all})
	}
	return w
}

func (w *simWorker) fits(job *waiting.Job) bool { return w.slots(job.Shape, false) >= job.Pods }

func (w *simWorker) slots(shape *placement.Shape, idle bool) (n int64) {
	for _, node := range w.nodes {
		free := &node.Free
		if idle {
			free = &node.Idle
		}
		n += shape.Slots(node.Object, free)
	}
	return n
}

func (w *simWorker) change(node int, unit placement.Resources, n int64) {
	changed := *w.nodes[node]
	changed.Free = changed.Free.Add(unit, n)
	w.nodes[node] = &changed
}

// fleet are the workers and their Jobs at one time.
type fleet struct {
	now     time.Time
	rand    *rand.Rand
	workers []*simWorker
	jobs    map[types.NamespacedName]*simJob
	// tried counts the calls of Place.
	tried int
	// busy is the CPU time that was used from warm to horizon.
	busy          time.Duration
	warm, horizon time.Duration
	// starts is called before a Job starts.
	starts func(*simJob, *simWorker)
	// started are the Jobs in the order in which they started.
	started []*simJob
}

// newFullFleet has one worker, on whose three nodes Jobs end in one to three hours.
func newFullFleet() *fleet {
	f := &fleet{now: noon, rand: rand.New(rand.NewPCG(1, 1)), workers: []*simWorker{newSimWorker("w", 3, "8")}}
	for i := range 3 {
		job := newSimJob(i, 0, 0, 1, "8")
		job.Runtime, job.start, job.nodes = time.Duration(3-i)*time.Hour, noon, []int{i}
		node := f.workers[0].nodes[i]
		node.Free = node.Free.Add(job.Shape.Unit(), -1)
		f.workers[0].running = append(f.workers[0].running, job)
	}
	return f
}

func (f *fleet) worker(name string) *simWorker {
	i := slices.IndexFunc(f.workers, func(w *simWorker) bool { return w.name == name })
	return f.workers[i]
}

// usual is how long the Jobs ran that have ended, by worker.
func (f *fleet) usual() map[string]waiting.Usual {
	usual := map[string]waiting.Usual{}
	for _, w := range f.workers {
		usual[w.name] = w.ran.Usual()
	}
	return usual
}

// Nodes implements waiting.Workers.
func (f *fleet) Nodes(worker string) ([]*placement.Node, bool) {
	return slices.Clone(f.worker(worker).nodes), true
}

// Added implements waiting.Workers.
func (*fleet) Added(string, *placement.Shape) []*placement.Node { return nil }

// Ends implements waiting.Workers.
func (f *fleet) Ends(worker string) (ends []waiting.End) {
	w := f.worker(worker)
	for _, job := range w.running {
		expected := waiting.Run{Started: job.start, Deadline: job.Runtime}.End(w.ran.Usual(), f.now)
		for _, node := range job.nodes {
			ends = append(ends, waiting.End{Job: job.Key, Expected: expected, Unit: job.Shape.Unit(), Pods: maps.All(map[string]int64{w.nodes[node].Object.Name: 1})})
		}
	}
	return ends
}

// EndOf implements waiting.Workers.
func (f *fleet) EndOf(worker string, of *waiting.Job) (waiting.End, bool) {
	w := f.worker(worker)
	i := slices.IndexFunc(w.running, func(job *simJob) bool { return job.Key == of.Key })
	if i < 0 {
		return waiting.End{}, false
	}
	job, pods := w.running[i], map[string]int64{}
	for _, node := range job.nodes {
		pods[w.nodes[node].Object.Name]++
	}
	expected := waiting.Run{Started: job.start, Deadline: job.Runtime}.End(w.ran.Usual(), f.now)
	return waiting.End{Job: job.Key, Expected: expected, Unit: job.Shape.Unit(), Pods: maps.All(pods)}, true
}

// HadTurn implements waiting.Workers.
func (*fleet) HadTurn(*waiting.Job) bool { return false }

// Postpone implements waiting.Workers.
func (*fleet) Postpone(*waiting.Job) {}

// Place implements waiting.Workers: in the worker with the most free slots.
func (f *fleet) Place(job *waiting.Job, admits func(string) int64, avoid func(string) bool) waiting.Outcome {
	f.tried++
	job.Usual = f.usual()
	var best *simWorker
	better := func(w *simWorker) bool {
		if avoid(w.name) != avoid(best.name) {
			return avoid(best.name)
		}
		return w.slots(job.Shape, false) > best.slots(job.Shape, false)
	}
	for _, w := range f.workers {
		if w.fits(job) && admits(w.name) >= job.Pods && (best == nil || better(w)) {
			best = w
		}
	}
	if best == nil {
		return waiting.Outcome{}
	}
	f.start(f.jobs[job.Key], best)
	return waiting.Outcome{Worker: best.name}
}

func (f *fleet) start(job *simJob, w *simWorker) {
	if f.starts != nil {
		f.starts(job, w)
	}
	job.start, job.end, job.on = f.now, f.now.Add(job.runs), w
	w.running = append(w.running, job)
	f.started = append(f.started, job)
	for range job.Pods {
		var free []int
		for i, node := range w.nodes {
			if job.Shape.Slots(node.Object, &node.Free) > 0 {
				free = append(free, i)
			}
		}
		on := free[f.rand.IntN(len(free))]
		job.nodes = append(job.nodes, on)
		w.change(on, job.Shape.Unit(), -1)
	}
}

// end ends what has run its time, and returns the workers that have changed.
func (f *fleet) end() placement.Changes {
	changed := placement.Changes{}
	for _, w := range f.workers {
		w.running = slices.DeleteFunc(w.running, func(job *simJob) bool {
			if job.end.After(f.now) {
				return false
			}
			for _, node := range job.nodes {
				w.change(node, job.Shape.Unit(), 1)
			}
			changed.Add(w.name, placement.Change{Kinds: placement.RoomChange})
			w.ran.Add(job.start, job.runs)
			return true
		})
	}
	return changed
}

// freed is room in some workers.
func freed(workers ...string) placement.Changes {
	changed := placement.Changes{}
	for _, worker := range workers {
		changed.Add(worker, placement.Change{Kinds: placement.RoomChange})
	}
	return changed
}

// queue decides which Jobs go when.
type queue interface {
	arrive(*fleet, *simJob)
	freed(*fleet, placement.Changes)
	len() int
}

// simulate plays Jobs that arrive in a fleet until all have started, or the time is over.
func simulate(f *fleet, jobs []*simJob, q queue, over time.Duration) {
	f.jobs = byKey(jobs, f)
	slices.SortStableFunc(jobs, func(a, b *simJob) int { return cmp.Compare(a.arrives, b.arrives) })
	for f.now = noon; f.now.Sub(noon) < over; {
		if changed := f.end(); len(changed) > 0 {
			q.freed(f, changed)
		}
		for len(jobs) > 0 && !noon.Add(jobs[0].arrives).After(f.now) {
			q.arrive(f, jobs[0])
			jobs = jobs[1:]
		}
		next, more := noon.Add(over), false
		if len(jobs) > 0 {
			next, more = noon.Add(jobs[0].arrives), true
		}
		for _, w := range f.workers {
			for _, job := range w.running {
				if job.end.Before(next) {
					next = job.end
				}
				more = true
			}
		}
		if !more {
			return
		}
		f.use(next)
		f.now = next
	}
}

// use counts the CPU time until a time.
func (f *fleet) use(until time.Time) {
	if horizon := noon.Add(f.horizon); until.After(horizon) {
		until = horizon
	}
	from := f.now
	if warm := noon.Add(f.warm); from.Before(warm) {
		from = warm
	}
	if !until.After(from) {
		return
	}
	for _, w := range f.workers {
		for _, job := range w.running {
			f.busy += until.Sub(from) * time.Duration(job.Pods*job.Shape.Unit().MilliCPU) / 1000
		}
	}
}

// lineQueue is this package.
type lineQueue struct {
	waiting.Line
	checked func(*fleet)
	walking bool
	holders map[string]*simJob // of the reservations, by worker
}

// overtaken forgets what a Job was promised when one before it takes its room.
func (q *lineQueue) overtaken(job *simJob, w *simWorker) {
	if holder := q.holders[w.name]; holder != nil && waiting.Compare(&job.Job, &holder.Job) < 0 {
		holder.promised = time.Time{}
	}
}

func (q *lineQueue) len() int { return q.Len() }

func (q *lineQueue) arrive(f *fleet, job *simJob) {
	job.Usual = f.usual()
	outcome := f.Place(&job.Job,
		func(worker string) int64 { return q.Admits(&job.Job, worker, f.now) },
		func(worker string) bool { return q.Avoids(&job.Job, worker) })
	switch {
	case outcome.Worker != "":
		q.Take(&job.Job, outcome.Worker, job.Pods, f.now)
		if r := q.Reservations()[outcome.Worker]; r != nil && waiting.Compare(&job.Job, r.Job) < 0 {
			q.freed(f, freed(outcome.Worker))
		}
	case q.Add(&job.Job):
		q.freed(f, nil)
	}
}

func (q *lineQueue) freed(f *fleet, changed placement.Changes) {
	q.walking = true
	q.Walk(f.now, changed, f)
	q.walking = false
	before := q.holders
	q.holders = map[string]*simJob{}
	for worker, job := range before { // one before it may have the worker now
		if r := q.Reservations()[worker]; r != nil && waiting.Compare(r.Job, &job.Job) < 0 {
			job.promised = time.Time{}
		}
	}
	for worker, r := range q.Reservations() {
		job := f.jobs[r.Job.Key]
		q.holders[worker] = job
		if job.promised.IsZero() {
			job.promised = r.Start
		}
	}
	if q.checked != nil {
		q.checked(f)
	}
}

// byKey prepares Jobs for a fleet.
func byKey(jobs []*simJob, f *fleet) map[types.NamespacedName]*simJob {
	all := map[types.NamespacedName]*simJob{}
	for _, job := range jobs {
		all[job.Key] = job
		for _, w := range f.workers {
			if w.slots(job.Shape, true) >= job.Pods {
				job.Needs.Set(w.name, waiting.Need{Pods: job.Pods})
			}
		}
	}
	return all
}
