package waiting_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/jobferry/jobferry/pkg/manager/line/waiting"
	"github.com/jobferry/jobferry/pkg/placement"
)

// The trace: four workers of 10 nodes with 8 CPUs each. For three hours come more small Jobs than
// there is room for, and every ten minutes one that is as wide as a worker.
const (
	traceHours   = 3
	traceWarm    = 20 * time.Minute // isn't measured: the workers fill
	traceWorkers = 4
	traceNodes   = 10
	wideEvery    = 10 * time.Minute
)

// load is what the trace asks for.
type load struct {
	name string
	// small is the share of the room that the small Jobs ask for, high that of them with high
	// priority.
	small, high float64
	// slack is by how much longer than it runs a Job's deadline is at most; zero: there are none.
	slack float64
}

var loads = []load{{"exact", .9, 0, 1}, {"deadlines", .9, 0, 2}, {"no-deadlines", .9, 0, 0}, {"priorities", .9, .1, 2}, {"priorities-exact", .9, .1, 1}}

// trace makes the Jobs.
func trace(seed uint64, l load) (jobs []*simJob) {
	r := rand.New(rand.NewPCG(seed, 2))
	cpus := float64(traceWorkers * traceNodes * 8)
	add := func(job *simJob, runs time.Duration) {
		job.runs = runs
		if l.slack > 0 {
			job.Runtime = time.Duration(float64(runs) * (1 + r.Float64()*(l.slack-1)))
		}
		jobs = append(jobs, job)
	}
	var wide time.Duration
	for at := time.Duration(0); at < traceHours*time.Hour; {
		if at >= wide {
			add(newSimJob(len(jobs), 0, at, traceNodes, "8"), 10*time.Minute)
			wide += wideEvery
		}
		pods, cpu := 1+r.Int64N(4), 1<<r.IntN(3)
		priority := int32(0)
		if r.Float64() < l.high {
			priority = 1
		}
		runs := time.Duration(60+r.IntN(540)) * time.Second
		add(newSimJob(len(jobs), priority, at, pods, fmt.Sprint(cpu)), runs)
		at += time.Duration(runs.Seconds() * float64(pods) * float64(cpu) / cpus / l.small * float64(time.Second))
	}
	return jobs
}

func traceFleet(seed uint64) *fleet {
	f := &fleet{rand: rand.New(rand.NewPCG(seed, 3)), warm: traceWarm, horizon: traceHours * time.Hour}
	for i := range traceWorkers {
		f.workers = append(f.workers, newSimWorker(fmt.Sprintf("w%d", i), traceNodes, "8"))
	}
	return f
}

// simpleQueue has the rules of the other systems. Kueue's are those of its documentation: the order
// is priority, then age; StrictFIFO lets nobody go before the head, BestEffortFIFO whatever fits.
type simpleQueue struct {
	strict   bool
	shuffled bool // as Jobferry did: whoever is looked at first goes
	jobs     []*simJob
}

func (q *simpleQueue) len() int { return len(q.jobs) }

func (q *simpleQueue) arrive(f *fleet, job *simJob) {
	compare := func(a, b *simJob) int { return waiting.Compare(&a.Job, &b.Job) }
	if q.strict && len(q.jobs) > 0 && compare(q.jobs[0], job) < 0 {
		q.insert(job, compare)
		return
	}
	if f.Place(&job.Job, unlimited, never).Worker == "" {
		q.insert(job, compare)
	}
}

func (q *simpleQueue) insert(job *simJob, compare func(a, b *simJob) int) {
	i, _ := slices.BinarySearchFunc(q.jobs, job, compare)
	q.jobs = slices.Insert(q.jobs, i, job)
}

func unlimited(string) int64 { return waiting.Unlimited }

func never(string) bool { return false }

func (q *simpleQueue) freed(f *fleet, _ placement.Changes) {
	jobs := slices.Clone(q.jobs)
	if q.shuffled {
		f.rand.Shuffle(len(jobs), func(i, j int) { jobs[i], jobs[j] = jobs[j], jobs[i] })
	}
	gone := map[*simJob]bool{}
	lacks := map[[2]int64]bool{} // Jobs like these don't fit
	for _, job := range jobs {
		like := [2]int64{job.Pods, job.Shape.Unit().MilliCPU}
		if lacks[like] {
			continue
		}
		if f.Place(&job.Job, unlimited, never).Worker != "" {
			gone[job] = true
			continue
		}
		lacks[like] = true
		if q.strict {
			break
		}
	}
	q.jobs = slices.DeleteFunc(q.jobs, func(job *simJob) bool { return gone[job] })
}

// outcome is what a system made of a trace.
type outcome struct {
	used               float64       // of all CPU time
	wideWait, longest  time.Duration // of the wide Jobs that started: the mean and the longest wait
	wideStarted, wides int
	late               float64 // the longest wait over the wait until the first reservation
	high, low          time.Duration
}

func play(seed uint64, l load, q queue) (o outcome) {
	f, jobs := traceFleet(seed), trace(seed, l)
	over := traceHours * time.Hour
	simulate(f, slices.Clone(jobs), q, over)
	o.used = float64(f.busy) / float64(over-traceWarm) / (traceWorkers * traceNodes * 8)
	var sums [2]time.Duration
	var counts [2]int
	for _, job := range jobs {
		wait := job.start.Sub(job.Created)
		if job.start.IsZero() {
			wait = noon.Add(over).Sub(job.Created)
		}
		if job.Pods < traceNodes {
			sums[job.Priority] += wait
			counts[job.Priority]++
			continue
		}
		if o.wides++; !job.start.IsZero() {
			o.wideStarted++
			o.wideWait += wait
			o.longest = max(o.longest, wait)
		}
		if promised := job.promised.Sub(job.Created); !job.promised.IsZero() {
			o.late = max(o.late, float64(wait)/float64(promised))
		}
	}
	o.wideWait /= time.Duration(max(o.wideStarted, 1))
	o.low, o.high = sums[0]/time.Duration(counts[0]), sums[1]/time.Duration(max(counts[1], 1))
	return o
}

// What docs/explanation/waiting.md says of the trace.
func TestTrace(t *testing.T) {
	for _, load := range loads[:3] {
		if o := play(1, load, &lineQueue{}); o.used < .95 || o.wideStarted < 15 || o.late > 1.1 {
			t.Errorf("%s: %+v", load.name, o)
		}
	}
}

var systems = []struct {
	name string
	new  func() queue
}{
	{"today", func() queue { return &simpleQueue{shuffled: true} }},
	{"line", func() queue { return &lineQueue{} }},
	{"StrictFIFO", func() queue { return &simpleQueue{strict: true} }},
	{"BestEffortFIFO", func() queue { return &simpleQueue{} }},
}

// BenchmarkTrace plays one trace to four systems.
func BenchmarkTrace(b *testing.B) {
	for _, load := range loads {
		for _, s := range systems {
			b.Run(load.name+"/"+s.name, func(b *testing.B) {
				var o outcome
				for b.Loop() {
					o = play(1, load, s.new())
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(o.used*100, "%used")
				b.ReportMetric(float64(o.wideStarted), fmt.Sprintf("of-%d-wide", o.wides))
				b.ReportMetric(o.wideWait.Minutes(), "wide-min")
				b.ReportMetric(o.longest.Minutes(), "wide-max-min")
				b.ReportMetric(o.late, "x-first-reservation")
				b.ReportMetric(o.high.Minutes(), "high-min")
				b.ReportMetric(o.low.Minutes(), "low-min")
			})
		}
	}
}
