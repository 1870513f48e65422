package job

import (
	"slices"
	"strings"
	"time"
	"unique"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// status is a worker and the state of a hub Job that is placed there; empty: of one that isn't
// placed.
type status struct {
	worker string
	state  jobview.State
}

// placed is the state of a hub Job while its workers are in touch, and the workers that it is on.
// Jobs that have the same share it.
type placed struct {
	// names are the workers', in order, with a comma between.
	names string
	state jobview.State
}

// nowhere is that of a record whose hub Job wasn't seen.
var nowhere = unique.Make(placed{})

// placedOf leaves out what is too long for the name of a worker, whoever has written it.
func placedOf(job *batchv1.Job) placed {
	names := slices.DeleteFunc(shards.WorkersOf(job), func(name string) bool {
		return len(name) > validation.DNS1123SubdomainMaxLength
	})
	return placed{strings.Join(names, ","), jobview.StateInTouch(job)}
}

func (p placed) hasEnded() bool { return p.state.IsFinal() }

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
	return placed{strings.Join(names, ","), p.state}
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
		return []status{{"", p.state}}
	}
	var all []status
	for _, worker := range workers {
		all = append(all, status{worker, p.state})
	}
	return all
}
