package job

import (
	"maps"
	"slices"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
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
	case job.Annotations[v1alpha1.AnnotationCluster] == "":
		return PhasePending
	case job.Status.StartTime == nil:
		return PhasePlaced
	default:
		return PhaseRunning
	}
}

// place is a hub Job as the index knows it.
type place struct {
	worker string
	phase  Phase
}

// placements is an index over the hub's Jobs, kept by the events of their watch: which Jobs are on
// which worker, and how many are in which phase.
type placements struct {
	mu    sync.Mutex
	jobs  map[types.NamespacedName]place
	on    map[string]map[types.NamespacedName]struct{}
	count map[place]int
}

func newPlacements() *placements {
	return &placements{
		jobs:  map[types.NamespacedName]place{},
		on:    map[string]map[types.NamespacedName]struct{}{},
		count: map[place]int{},
	}
}

// Set takes over a Job as it is now, and returns where it was before, and is.
func (p *placements) Set(job *batchv1.Job) (before, after place) {
	after = place{worker: job.Annotations[v1alpha1.AnnotationCluster], phase: phaseOf(job)}
	return p.change(keyOf(job), &after), after
}

// Remove forgets a Job, and returns where it was.
func (p *placements) Remove(key types.NamespacedName) (before place) { return p.change(key, nil) }

func (p *placements) change(key types.NamespacedName, next *place) place {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, known := p.jobs[key]
	if known {
		p.drop(key, before)
	}
	if next != nil {
		p.add(key, *next)
	}
	return before
}

func (p *placements) drop(key types.NamespacedName, was place) {
	delete(p.jobs, key)
	delete(p.on[was.worker], key)
	if len(p.on[was.worker]) == 0 {
		delete(p.on, was.worker)
	}
	if p.count[was]--; p.count[was] == 0 {
		delete(p.count, was)
	}
}

func (p *placements) add(key types.NamespacedName, is place) {
	p.jobs[key] = is
	if p.on[is.worker] == nil {
		p.on[is.worker] = map[types.NamespacedName]struct{}{}
	}
	p.on[is.worker][key] = struct{}{}
	p.count[is]++
}

// On returns the Jobs placed on a worker.
func (p *placements) On(worker string) []types.NamespacedName {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.on[worker]))
}

// Unfinished returns the number of a worker's Jobs that haven't finished.
func (p *placements) Unfinished(worker string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.on[worker]) - p.count[place{worker, PhaseFinished}]
}

// Counts returns the number of Jobs by worker and phase.
func (p *placements) Counts() map[place]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.count)
}
