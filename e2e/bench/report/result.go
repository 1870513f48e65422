package report

import (
	"time"

	"github.com/jobferry/jobferry/e2e/bench/audit"
	"github.com/jobferry/jobferry/e2e/bench/measure"
)

// Result is what one run has measured. Times are in nanoseconds where it's written as JSON, sizes in bytes.
type Result struct {
	// Jobs were submitted at once. Resting ones run all along.
	Jobs, Resting int
	// Workers is the number of clusters, Cores the number of the machine's, shared by all processes.
	Workers, Cores int
	// Floor is the Jobs straight into one cluster; nil: not measured.
	Floor *Burst `json:",omitempty"`
	// Flood is the Jobs by way of the hub.
	Flood Burst
	// Removal is the time from the first delete until the hub has let all Jobs go.
	Removal time.Duration
	// Singles are the latencies of one Job at a time, AtOnce those of the flood.
	Singles, AtOnce Latencies
	// Manager is what it used.
	Manager Manager
	// Requests of the manager for the flood's Jobs, for their whole lives.
	Requests []audit.Count
	// Quiet is how long nothing happened, and QuietRequests what the manager asked for then all the same, Upkeep apart.
	Quiet         time.Duration
	QuietRequests []audit.Count
	Upkeep        []audit.Count
}

// Burst is a number of Jobs at once.
type Burst struct {
	// Submitted is the time until the last of them was created, Complete until the last was Complete.
	Submitted, Complete time.Duration
	// ClustersCPU is what the processes of all clusters used meanwhile, by cluster and program.
	ClustersCPU map[string]time.Duration
}

// Latencies are times of single Jobs.
type Latencies struct {
	// Mirror is from the create on the hub to the mirror in a worker.
	Mirror measure.Quantiles
	// Lag is from a change of the mirror's status to the hub status that shows it.
	Lag measure.Quantiles
}

// Manager is what the manager used.
type Manager struct {
	// FloodCPU is the CPU time during the flood, CPU that of its whole life.
	FloodCPU, CPU time.Duration
	// PeakRSS is the most memory it held.
	PeakRSS int64
}

// Ratio is how much longer the flood took than the floor; 0: there was none.
func (r *Result) Ratio() float64 {
	if r.Floor == nil {
		return 0
	}
	return r.Flood.Complete.Seconds() / r.Floor.Complete.Seconds()
}

// Rate is the number of Jobs per second from the first create to the last Complete.
func (b *Burst) Rate(jobs int) float64 { return float64(jobs) / b.Complete.Seconds() }

// CPU is what the clusters used in all.
func (b *Burst) CPU() (sum time.Duration) {
	for _, used := range b.ClustersCPU {
		sum += used
	}
	return sum
}

// PerJob is the number of requests and of events for each Job.
func (r *Result) PerJob() (requests, events float64) {
	for _, c := range r.Requests {
		if c.IsEvent() {
			events += float64(c.Requests)
		} else {
			requests += float64(c.Requests)
		}
	}
	return requests / float64(r.Jobs), events / float64(r.Jobs)
}

// AtRest is the number of requests in the quiet.
func (r *Result) AtRest() int {
	n := 0
	for _, c := range r.QuietRequests {
		n += c.Requests
	}
	return n
}
