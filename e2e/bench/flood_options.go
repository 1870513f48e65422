package bench

import (
	"errors"
	"time"

	batchv1 "k8s.io/api/batch/v1"
)

// FloodOptions choose what is measured of many Jobs at once.
type FloodOptions struct {
	// Common has 2 workers by default.
	Common
	// Jobs is how many are submitted at once, to the floor and to the hub. Default 500.
	Jobs int
	// Rounds is how often, one after another: to the floor, to the hub, to the floor. Default 3.
	Rounds int
	// Singles is how many are submitted one at a time; 0: none. Default 50.
	Singles int
	// Floor is whether the Jobs are also submitted to a worker without Jobferry. Default true.
	Floor bool
	// Bound is whether the lower bound is measured, too. Default false.
	Bound bool
	// Peer is whether MultiKueue is measured, too, after the last round. Default false.
	Peer bool
	// Quiet is how long the manager is watched at rest; 0: not at all. Default 60s.
	Quiet time.Duration
	// Resting is how many Jobs run all along, so that there is something to rest on. Default 10.
	Resting int
	// Submitters is how many creates and deletes are under way at a time. Default 32.
	Submitters int
	// Manager is the program to measure. Empty: it's built from the source around.
	Manager string
	// Against is another manager to compare with: both are measured in each round. Empty: none.
	Against string
	// Pods is whether to compare the manager that shows the Jobs' Pods on the hub with one that
	// doesn't, in each round. Default false.
	Pods bool
	// Completions of each Job, and Parallelism is how many of its Pods run at a time. Default 1.
	Completions, Parallelism int
	// Profiles is a folder for profiles: CPU of the API servers and the manager at the beginning of
	// floor and flood, and the manager's heap after the flood. Empty: none.
	Profiles string
}

// DefaultFloodOptions returns the defaults.
func DefaultFloodOptions() FloodOptions {
	return FloodOptions{
		Jobs: 500, Completions: 1, Parallelism: 1, Rounds: 3, Singles: 50, Common: common(2), Floor: true,
		Quiet: time.Minute, Resting: 10, Submitters: 32,
	}
}

// Validate reports all that can't be used.
func (o *FloodOptions) Validate() error {
	var p problems
	p.atLeast("jobs", o.Jobs, 1)
	p.atLeast("completions", o.Completions, 1)
	p.atLeast("parallelism", o.Parallelism, 1)
	p.atLeast("rounds", o.Rounds, 1)
	p.atLeast("singles", o.Singles, 0)
	p.atLeast("workers", o.Workers, 1)
	p.atLeast("resting", o.Resting, 0)
	p.atLeast("submitters", o.Submitters, 1)
	p.refuse(o.Quiet < 0, "quiet: must not be negative, but is %s", o.Quiet)
	p.refuse(o.Pods && o.Against != "", "pods and against: choose one comparison")
	return errors.Join(p...)
}

// compares: two managers are measured in each round.
func (o *FloodOptions) compares() bool { return o.Against != "" || o.Pods }

// sized makes a Job as large as it's to be.
func (o *FloodOptions) sized(j *batchv1.Job) {
	j.Spec.Completions, j.Spec.Parallelism = new(int32(o.Completions)), new(int32(o.Parallelism))
}
