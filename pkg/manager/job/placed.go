package job

import (
	"slices"
	"strings"
	"time"
	"unique"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// Phase is where a hub Job is, as counted in metrics.
type Phase string

// The phases of a hub Job.
const (
	PhasePending   Phase = "Pending"
	PhaseSuspended Phase = "Suspended"
	PhasePlaced    Phase = "Placed"
	PhaseRunning   Phase = "Running"
	PhaseFinished  Phase = "Finished"
)

func phaseOf(job *batchv1.Job) Phase {
	switch {
	case mirror.Finished(job):
		return PhaseFinished
	case mirror.Suspended(job):
		return PhaseSuspended
	case len(shards.WorkersOf(job)) == 0:
		return PhasePending
	case job.Status.StartTime == nil:
		return PhasePlaced
	default:
		return PhaseRunning
	}
}

// status is a worker and the phase of a hub Job that is placed there; empty: of one that isn't
// placed.
type status struct {
	worker string
	phase  Phase
}

// placed is the phase of a hub Job, and the workers that it is placed on. Jobs that have the same
// share it.
type placed struct {
	// names are the workers', in order, with a comma between.
	names string
	phase Phase
}

// nowhere is that of a record whose hub Job wasn't seen.
var nowhere = unique.Make(placed{})

// placedOf leaves out what is too long for the name of a worker, whoever has written it.
func placedOf(job *batchv1.Job) placed {
	names := slices.DeleteFunc(shards.WorkersOf(job), func(name string) bool {
		return len(name) > validation.DNS1123SubdomainMaxLength
	})
	return placed{strings.Join(names, ","), phaseOf(job)}
}

// bytesOfWorker is about what the store takes of a worker of a Job, beside its name.
const bytesOfWorker = 192

// bytes is what the store takes for the workers of a Job that has several.
func (p placed) bytes() int {
	if commas := strings.Count(p.names, ","); commas > 0 {
		return len(p.names) + (commas+1)*bytesOfWorker
	}
	return 0
}

// only leaves out workers.
func (p placed) only(of func(worker string) bool) placed {
	names := slices.DeleteFunc(p.workers(), func(name string) bool { return !of(name) })
	return placed{strings.Join(names, ","), p.phase}
}

func (p placed) workers() []string {
	if p.names == "" {
		return nil
	}
	return strings.Split(p.names, ",")
}

// run is when an unfinished hub Job has started, and how long it may run; zero: it hasn't, and
// there is no limit.
type run struct {
	started  time.Time
	deadline time.Duration
}

func runOf(job *batchv1.Job) run {
	if mirror.Finished(job) {
		return run{}
	}
	r := run{deadline: time.Duration(ptr.Deref(job.Spec.ActiveDeadlineSeconds, 0)) * time.Second}
	if job.Status.StartTime != nil {
		r.started = job.Status.StartTime.Time
	}
	return r
}

// statuses are those that a Job is counted as: one for each worker.
func (p placed) statuses() []status {
	workers := p.workers()
	if len(workers) == 0 {
		return []status{{"", p.phase}}
	}
	var all []status
	for _, worker := range workers {
		all = append(all, status{worker, p.phase})
	}
	return all
}
