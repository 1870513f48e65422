package stockout

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/placement/placementtest"
)

// The trace: a day of Jobs of one Pod, which takes a whole node, in workers that add nodes.
const (
	day        = 24 * time.Hour
	tick       = 10 * time.Second
	traceSize  = 8 // workers
	shapes     = 2 // kinds of nodes
	arrivals   = 30 * time.Second
	nodeDelay  = 3 * time.Minute
	nodeIdle   = 10 * time.Minute
	goesOut    = 6 * time.Hour // on average, after the last time
	isOutFor   = time.Hour     // on average
	roundEvery = 5 * time.Minute
	roundSize  = 3
)

// What cluster-autoscaler does by default when its cloud has said that it has no nodes: it doesn't
// ask again for a while, which doubles with each further failure, and says so in its status.
const (
	failsAfter   = time.Minute
	firstBackoff = 5 * time.Minute
	maxBackoff   = 30 * time.Minute
	readEvery    = 30 * time.Second // by the manager
)

// What Karpenter does: its cloud says within seconds that it has none, and Karpenter deletes the
// NodeClaim. It doesn't ask for such machines again for a while, but for as long as Pods wait.
const (
	claimFails  = tick
	unavailable = 3 * time.Minute
)

// kind of the workers' autoscalers.
type kind int

const (
	// silent ones ask for nodes until one comes, and say nothing.
	silent kind = iota
	clusterAutoscaler
	karpenter
)

// period is when a worker gets no nodes of a kind.
type period struct{ from, to time.Duration }

// cloud has the stockouts by worker and kind.
type cloud [traceSize][shapes][]period

func newCloud(r *rand.Rand) *cloud {
	c := &cloud{}
	for w := range c {
		for s := range c[w] {
			for at := exponential(r, goesOut); at < 2*day; {
				end := at + exponential(r, isOutFor)
				c[w][s] = append(c[w][s], period{at, end})
				at = end + exponential(r, goesOut)
			}
		}
	}
	return c
}

func exponential(r *rand.Rand, mean time.Duration) time.Duration {
	return time.Duration(r.ExpFloat64() * float64(mean))
}

// end is when a stockout ends; now if there is none.
func (c *cloud) end(w, s int, now time.Duration) time.Duration {
	for _, p := range c[w][s] {
		if now >= p.from && now < p.to {
			return p.to
		}
	}
	return now
}

// autoscaler is that of one worker for one kind of nodes.
type autoscaler struct {
	// failing is when the cloud will have said that it has none; zero: nothing is asked for in vain.
	failing time.Duration
	// fails counts the failures one after the other, and until is how long it waits for that.
	fails int
	until time.Duration
	// says: the manager has read that it waits, or concluded that from what was deleted.
	says bool
	// launches is what the manager knows of Karpenter's NodeClaims.
	launches placement.Launches
}

// claim has the manager see what has become of a NodeClaim.
func (a *autoscaler) claim(made bool, now time.Time) {
	claim := placementtest.FailedClaim("", now)
	if made {
		claim = placementtest.MadeClaim("")
	}
	a.launches.See(claim, now)
}

// ask is a Job's for a node.
type ask struct {
	since time.Duration
	// comes is when the node does; zero: its making hasn't begun.
	comes time.Duration
}

// traceJob is a Job of one Pod.
type traceJob struct {
	key    types.NamespacedName
	shape  int
	at     time.Duration
	run    time.Duration
	random uint64
	// asked are its asks in each worker where it waits.
	asked map[int]*ask
	start time.Duration // zero: not yet
}

func traceJobs(r *rand.Rand) (jobs []*traceJob) {
	for at := time.Duration(0); at < day; at += exponential(r, arrivals) {
		jobs = append(jobs, &traceJob{
			key: named(fmt.Sprint(len(jobs))), shape: r.IntN(shapes), at: at.Truncate(tick) + tick, asked: map[int]*ask{}, random: r.Uint64(),
			run: 10*time.Minute + time.Duration(r.Int64N(int64(50*time.Minute))),
		})
	}
	return jobs
}

// play is one system's day.
type play struct {
	*cloud
	with     kind
	scalers  [traceSize][shapes]autoscaler
	patience time.Duration
	now      time.Duration
	// idle are the nodes without a Job, and busy has until when the others have one.
	idle       [traceSize][shapes][]idleNode
	busy       [traceSize][shapes][]time.Duration
	made, vain int
	wait       time.Duration
	record     Record
}

// idleNode is there from some time on, and goes when it has had no Job for long.
type idleNode struct {
	from time.Duration
	used bool // it has had a Job
}

// system asks for nodes for a Job, at each tick until it starts.
type system func(*play, *traceJob)

func (p *play) clock() time.Time { return time.Unix(0, 0).Add(p.now) }

func (p *play) ask(job *traceJob, worker int) {
	if _, is := job.asked[worker]; !is {
		job.asked[worker] = &ask{since: p.now}
	}
}

// scale has the autoscalers ask for nodes for the Jobs that wait.
func (p *play) scale(waiting []*traceJob) {
	var pending [traceSize][shapes][]*ask
	for _, job := range waiting {
		for w, a := range job.asked {
			if a.comes == 0 {
				pending[w][job.shape] = append(pending[w][job.shape], a)
			}
		}
	}
	for w := range traceSize {
		for s := range shapes {
			p.scaleUp(w, s, pending[w][s])
		}
	}
}

func (p *play) scaleUp(w, s int, pending []*ask) {
	a, isOut := &p.scalers[w][s], p.end(w, s, p.now) > p.now
	if a.failing > 0 && p.now >= a.failing {
		p.fails(a)
	}
	switch {
	case p.with == karpenter:
		a.says = len(a.launches.Out(p.clock())) > 0
	case p.now%readEvery == 0:
		a.says = p.now < a.until
	}
	switch {
	case len(pending) == 0 || a.failing > 0 || p.now < a.until:
	case !isOut:
		a.fails = 0
		a.claim(true, p.clock())
		for _, ask := range pending {
			ask.comes = p.now + nodeDelay
		}
	case p.with == clusterAutoscaler:
		a.failing = p.now + failsAfter
	case p.with == karpenter:
		a.failing = p.now + claimFails
	}
}

// fails is when the cloud has said that it has none.
func (p *play) fails(a *autoscaler) {
	a.failing = 0
	if p.with == karpenter {
		a.until = p.now + unavailable
		a.claim(false, p.clock())
		return
	}
	a.until = p.now + min(firstBackoff<<a.fails, maxBackoff)
	a.fails++
}

// withdraw gives up a worker. A node that is being made for the Job comes, for another or in vain.
func (p *play) withdraw(job *traceJob, worker int) {
	a := job.asked[worker]
	delete(job.asked, worker)
	if a.comes > 0 {
		p.made++
		p.idle[worker][job.shape] = append(p.idle[worker][job.shape], idleNode{from: a.comes})
	}
}

// tries starts a Job if one of its workers has a node.
func (p *play) tries(job *traceJob) {
	for w := range traceSize {
		a, is := job.asked[w]
		if !is {
			continue
		}
		free := p.freeAt(w, job.shape)
		if (a.comes == 0 || a.comes > p.now) && free < 0 {
			continue
		}
		if free >= 0 {
			p.idle[w][job.shape] = append(p.idle[w][job.shape][:free], p.idle[w][job.shape][free+1:]...)
		} else {
			p.made++
			delete(job.asked, w)
		}
		for other := range traceSize {
			if _, is := job.asked[other]; is {
				p.withdraw(job, other)
			}
		}
		p.busy[w][job.shape] = append(p.busy[w][job.shape], p.now+job.run)
		p.record.Started(fmt.Sprint(w), fmt.Sprint(job.shape))
		job.start = max(p.now, job.at)
		p.wait += job.start - job.at
		return
	}
}

// freeAt is the index of a node without a Job; -1: there is none.
func (p *play) freeAt(w, s int) int {
	for i, node := range p.idle[w][s] {
		if node.from <= p.now {
			return i
		}
	}
	return -1
}

func (p *play) nodesGo() {
	for w := range traceSize {
		for s := range shapes {
			var busy []time.Duration
			var idle []idleNode
			for _, until := range p.busy[w][s] {
				if until <= p.now {
					idle = append(idle, idleNode{p.now, true})
				} else {
					busy = append(busy, until)
				}
			}
			for _, node := range p.idle[w][s] {
				switch {
				case node.from+nodeIdle > p.now:
					idle = append(idle, node)
				case !node.used:
					p.vain++
				}
			}
			p.busy[w][s], p.idle[w][s] = busy, idle
		}
	}
}

// run plays a day, and until all have started.
func (p *play) run(jobs []*traceJob, next system) {
	waiting := []*traceJob{}
	for p.now = 0; len(jobs)+len(waiting) > 0; p.now += tick {
		p.nodesGo()
		for len(jobs) > 0 && jobs[0].at <= p.now {
			waiting, jobs = append(waiting, jobs[0]), jobs[1:]
		}
		var still []*traceJob
		for _, job := range waiting {
			next(p, job)
			if p.tries(job); job.start == 0 {
				still = append(still, job)
			}
		}
		waiting = still
		p.scale(waiting)
	}
}

// best asks the worker that is the first by a measure; of equals one by chance.
func (p *play) best(job *traceJob, measure func(w int) time.Duration) (best int) {
	for i := range traceSize {
		w := (i + int(job.random%traceSize)) % traceSize
		if i == 0 || measure(w) < measure(best) {
			best = w
		}
	}
	return best
}

// clairvoyant knows when a worker gets nodes again.
func clairvoyant(p *play, job *traceJob) {
	if len(job.asked) > 0 {
		return
	}
	p.ask(job, p.best(job, func(w int) time.Duration {
		if p.freeAt(w, job.shape) >= 0 {
			return 0
		}
		return max(p.end(w, job.shape, p.now), p.scalers[w][job.shape].until)
	}))
}

// jobferry is what this package and the autoscalers say, and room now before scale-up.
func jobferry(p *play, job *traceJob) {
	shape := fmt.Sprint(job.shape)
	leaves := -1
	for w, a := range job.asked {
		out := p.record.IsOutForAll(fmt.Sprint(w), shape, job.key, p.clock()) || p.scalers[w][job.shape].says
		if p.now-a.since >= p.patience {
			p.record.Failed(fmt.Sprint(w), shape, job.key, p.patience, p.clock())
			out = true
		}
		if out {
			leaves = w
		}
	}
	if leaves < 0 && len(job.asked) > 0 {
		return
	}
	const never = time.Duration(1 << 62)
	measure := func(w int) time.Duration {
		switch {
		case w == leaves || p.record.IsOut(fmt.Sprint(w), shape, job.key, p.clock()):
			return never
		case p.freeAt(w, job.shape) >= 0:
			return 0
		case p.scalers[w][job.shape].says:
			return never
		default:
			return 1
		}
	}
	best := p.best(job, measure)
	if measure(best) == never {
		return // it waits where it is
	}
	if leaves >= 0 {
		p.withdraw(job, leaves)
	}
	p.record.Chosen(fmt.Sprint(best), shape, job.key, p.patience, p.clock())
	p.ask(job, best)
}

// allAtOnce asks all workers; the first that has a node runs the Job.
func allAtOnce(p *play, job *traceJob) {
	for w := range traceSize {
		p.ask(job, w)
	}
}

// incremental asks three workers, and three more in each round.
func incremental(p *play, job *traceJob) {
	rounds := 1 + int((p.now-job.at)/roundEvery)
	for i := range min(rounds*roundSize, traceSize) {
		p.ask(job, (i+int(job.random%traceSize))%traceSize)
	}
}

// BenchmarkStockouts plays ten days to four systems, with workers whose autoscalers say nothing,
// and with some that say that no node came.
func BenchmarkStockouts(b *testing.B) {
	for _, s := range []struct {
		name string
		next system
		with play
	}{
		{"clairvoyant", clairvoyant, play{}},
		{"clairvoyant, cluster-autoscaler", clairvoyant, play{with: clusterAutoscaler}},
		{"clairvoyant, Karpenter", clairvoyant, play{with: karpenter}},
		{"jobferry", jobferry, play{patience: 10 * time.Minute}},
		{"jobferry, podStartTimeout 5m", jobferry, play{patience: 5 * time.Minute}},
		{"jobferry, podStartTimeout 3m10s", jobferry, play{patience: 190 * time.Second}},
		{"jobferry, cluster-autoscaler", jobferry, play{patience: 10 * time.Minute, with: clusterAutoscaler}},
		{"jobferry, Karpenter", jobferry, play{patience: 10 * time.Minute, with: karpenter}},
		{"AllAtOnce", allAtOnce, play{}},
		{"AllAtOnce, cluster-autoscaler", allAtOnce, play{with: clusterAutoscaler}},
		{"AllAtOnce, Karpenter", allAtOnce, play{with: karpenter}},
		{"Incremental", incremental, play{}},
		{"Incremental, cluster-autoscaler", incremental, play{with: clusterAutoscaler}},
		{"Incremental, Karpenter", incremental, play{with: karpenter}},
	} {
		b.Run(s.name, func(b *testing.B) { benchmarkDays(b, s.with, s.next) })
	}
}

func benchmarkDays(b *testing.B, with play, next system) {
	var jobs, made, vain int
	var wait time.Duration
	for b.Loop() {
		jobs, made, vain, wait = 0, 0, 0, 0
		for seed := range uint64(10) {
			r := rand.New(rand.NewPCG(seed, 1))
			p := with
			p.cloud = newCloud(r)
			all := traceJobs(r)
			p.run(all, next)
			jobs, made, vain, wait = jobs+len(all), made+p.made, vain+p.vain, wait+p.wait
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(wait.Seconds()/float64(jobs), "s-to-first-pod")
	b.ReportMetric(float64(made), "nodes")
	b.ReportMetric(float64(vain), "in-vain")
	b.ReportMetric(float64(jobs), "jobs")
}
