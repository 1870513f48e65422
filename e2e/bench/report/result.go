package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/jobferry/jobferry/e2e/bench/audit"
	"github.com/jobferry/jobferry/e2e/bench/measure"
)

// Result is what one run has measured. Times are in nanoseconds where it's written as JSON, sizes
// in bytes.
type Result struct {
	// Jobs were submitted at once. Resting ones run all along.
	Jobs, Resting int
	// Pods are those of each Job. Shows: what is compared is whether the hub shows them.
	Pods  int
	Shows bool `json:",omitempty"`
	// Workers is the number of clusters.
	Workers int
	// Machine is what ran it all, see measure.Machine.
	Machine string
	// Rounds are the Jobs at once, again and again; at least one.
	Rounds []Round
	// Singles are the latencies of one Job at a time.
	Singles Latencies
	// PeakMemory is the most memory that the manager held, in bytes.
	PeakMemory int64
	// Writes are what each write to the hub for all Jobs costs; none: not measured.
	Writes []Write `json:",omitempty"`
	// Peer is MultiKueue with the same Jobs, once; nil: not measured.
	Peer *Peer `json:",omitempty"`
	// Requests of the manager for the Jobs of all rounds, for their whole lives.
	Requests []audit.Count
	// Statuses are how many the workers' Job controllers wrote for those Jobs.
	Statuses int
	// Quiet is how long nothing happened, and QuietRequests what the manager asked for then all the
	// same, Upkeep apart.
	Quiet         time.Duration
	QuietRequests []audit.Count
	Upkeep        []audit.Count
}

// Round is the Jobs straight into one cluster, and then by way of the hub.
type Round struct {
	// Floor is the Jobs straight into one cluster, Bound the writes that any dispatcher makes for
	// them; nil: not measured.
	Floor *Burst `json:",omitempty"`
	Bound *Burst `json:",omitempty"`
	// Flood is the Jobs by way of the hub.
	Flood Burst
	// AtOnce are the latencies of the flood.
	AtOnce Latencies
	// Overtaken is by how many places Jobs of the flood fell back from their creation to their
	// mirrors'.
	Overtaken measure.Places
	// IsBase: it's a round of the program that the other is compared with. Used is what the manager
	// used; it's measured only to compare.
	IsBase bool `json:",omitempty"`
	Used   Used
	// Removal is the time from the first delete until the hub has let all Jobs go.
	Removal time.Duration
}

// Write is a kind of write to the hub, and what all programs used for as many as there are Jobs.
type Write struct {
	Name string
	CPU  CPU
}

// Peer is MultiKueue, by way of which the same Jobs went: Kueue on the hub and in each worker.
type Peer struct {
	// Version is Kueue's, and Rate the limit of its clients of workers, in requests per second.
	Version string
	Rate    int
	// Floor is the Jobs straight into one cluster just before; nil: not measured.
	Floor *Burst `json:",omitempty"`
	Flood Burst
	// Singles are the latencies of one Job at a time, AtOnce those of the flood.
	Singles, AtOnce Latencies
	// PeakMemory is the most memory that the hub's Kueue held, in bytes.
	PeakMemory int64
	// Requests are those of the hub's Kueue for the flood's Jobs and Workloads, for their whole
	// lives. OfWorkers are those of the workers' Kueues for the same.
	Requests, OfWorkers []audit.Count
}

// Burst is a number of Jobs at once.
type Burst struct {
	// Submitted is the time until the last of them was created, Complete until the last was
	// Complete.
	Submitted, Complete time.Duration
	// CPU is what all processes used meanwhile.
	CPU CPU
}

// Latencies are times of single Jobs.
type Latencies struct {
	// Mirror is from the create on the hub to the mirror in a worker.
	Mirror measure.Quantiles
	// Lag is from a change of the mirror's status to the hub status that shows it.
	Lag measure.Quantiles
}

// Ratio is how much longer the flood took than the floor; 0: there was none.
func (r *Round) Ratio() float64 {
	return r.Flood.against(r.Floor)
}

func (b *Burst) against(floor *Burst) float64 {
	if floor == nil {
		return 0
	}
	return b.Complete.Seconds() / floor.Complete.Seconds()
}

// Typical is the round in the middle, by its ratio, or by its time if there was no floor.
func (r *Result) Typical() *Round {
	sorted := r.sorted()
	return &sorted[len(sorted)/2]
}

func (r *Result) sorted() []Round {
	return slices.SortedFunc(slices.Values(r.Rounds), func(a, b Round) int {
		return cmp.Or(cmp.Compare(a.Ratio(), b.Ratio()), cmp.Compare(a.Flood.Complete, b.Flood.Complete))
	})
}

// Rate is the number of Jobs per second from the first create to the last Complete.
func (b *Burst) Rate(jobs int) float64 { return float64(jobs) / b.Complete.Seconds() }

// Submitted is the number of Jobs of all rounds.
func (r *Result) Submitted() int { return r.Jobs * len(r.Rounds) }

// PerJob is the number of requests and of events for each Job.
func (r *Result) PerJob() (requests, events float64) { return perJob(r.Requests, r.Submitted()) }

func perJob(counts []audit.Count, jobs int) (requests, events float64) {
	for _, c := range counts {
		if c.IsEvent() {
			events += float64(c.Requests)
		} else {
			requests += float64(c.Requests)
		}
	}
	return requests / float64(jobs), events / float64(jobs)
}

// AtRest is the number of requests in the quiet.
func (r *Result) AtRest() int {
	n := 0
	for _, c := range r.QuietRequests {
		n += c.Requests
	}
	return n
}
