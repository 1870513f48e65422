package plan

import (
	"math"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/mirror/intervals"
	"github.com/jobferry/jobferry/pkg/mirror/outcome"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

// Snapshot is all a sync knows. Nothing in it is changed.
type Snapshot struct {
	Job     *batchv1.Job
	Pods    []*corev1.Pod // those the Job controls, see OwnershipOf
	Pending Pending
	// Backoff is what the last sync's plan said, nil if there was none since the controller was
	// started.
	Backoff *Backoff
	// Fenced: the Job's Pods must not run, see fence.go.
	Fenced bool
	// Unanswered are the indexes of a shard that may have Pods which aren't known here.
	Unanswered intervals.Set
	Now        time.Time
}

// Event is to be recorded on the Job.
type Event struct{ Type, Reason, Message string }

// Plan is what a sync does first; an empty one changes no Pod.
type Plan struct {
	Delete []Deletion
	// Create makes one Pod by each function. Together, those of a large template would take
	// gigabytes.
	Create       []func() *corev1.Pod
	CreateReason CreateReason
	Wake         time.Duration // see package wake
	// the limit per sync has cut it: there's more to do at once, unless this fails
	More    bool
	Backoff Backoff // for the next snapshot, once the status is written
	Action  Action

	facts   *facts
	outcome *outcome.Outcome
}

// facts are the input of the rules. gather makes them once; next is the status in the making.
type facts struct {
	job     *batchv1.Job
	options Options
	now     time.Time
	next    batchv1.JobStatus

	indexed, suspended, fenced, replacesOnlyFailed bool
	shard                                          *shard // nil: the Job runs here as a whole

	completions  int
	backoffLimit int32

	pods, active       []*pod
	ready, terminating int32
	listed             sets.Set[types.UID] // in status.uncountedTerminatedPods
	indexes            indexes
	succeeded, failed  int32 // counted, listed and new
}

// Compute decides which Pods to delete and to create. The Job must not have finished.
func Compute(s Snapshot, o Options) *Plan {
	f := gather(s, o)
	newSucceeded := filter(f.pods, func(p *pod) bool { return f.isNew(p) && p.succeeded() })
	newFailed := filter(f.pods, func(p *pod) bool { return f.isNew(p) && f.countsAsFailed(p) })
	f.count(newSucceeded, newFailed)
	if f.shard != nil {
		f.observe(s.Unanswered)
	}

	before := ptr.Deref(s.Backoff, Backoff{})
	if s.Backoff == nil {
		before = f.remembered()
	}
	p := &Plan{facts: f, Action: Reconciling, Backoff: before.after(newSucceeded, newFailed), CreateReason: f.createReason()}
	p.outcome = f.decideOutcome()
	switch {
	case p.outcome != nil:
		// After a success the remaining Pods are untracked before they're deleted. Otherwise a
		// controller that is killed in between would count the deleted ones as failed, which might
		// fail the Job.
		for _, a := range f.active {
			p.Delete = append(p.Delete, Deletion{Pod: a.Pod, Untrack: a.tracked && !p.outcome.Failed()})
		}
	case f.job.DeletionTimestamp == nil, f.fenced: // who is fenced doesn't wait for whatever keeps the Job
		p.Wake = wake.Until(f.deadline(), f.now)
		f.scale(p)
	}
	return p
}

func gather(s Snapshot, o Options) *facts {
	spec := &s.Job.Spec
	f := &facts{
		job: s.Job, options: o, now: s.Now, next: *s.Job.Status.DeepCopy(),
		indexed:            IsIndexed(s.Job),
		shard:              readShard(s.Job),
		suspended:          ptr.Deref(spec.Suspend, false),
		fenced:             s.Fenced,
		replacesOnlyFailed: replacesOnlyFailed(s.Job),
		completions:        int(ptr.Deref(spec.Completions, 0)),
		backoffLimit:       ptr.Deref(spec.BackoffLimit, math.MaxInt32),
		pods:               classify(s.Pods, s.Pending, o.TrackingFinalizer),
	}
	if f.next.UncountedTerminatedPods == nil {
		f.next.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	}
	if f.next.StartTime == nil && !f.suspended {
		f.next.StartTime = &metav1.Time{Time: s.Now}
	}
	f.listed = sets.New(f.next.UncountedTerminatedPods.Succeeded...).Insert(f.next.UncountedTerminatedPods.Failed...)
	if f.indexed {
		for _, p := range f.pods {
			p.index = CompletionIndex(p.Pod)
		}
		// Of Pods that are equal in all else, those with the lowest indexes are counted and deleted
		// first.
		slices.SortStableFunc(f.pods, func(a, b *pod) int { return a.index - b.index })
	}
	f.active = filter(f.pods, (*pod).active)
	f.ready = int32(len(filter(f.active, (*pod).ready)))
	f.terminating = int32(len(filter(f.pods, (*pod).terminating)))
	return f
}

// count adds the Pods that the status hasn't counted yet.
func (f *facts) count(newSucceeded, newFailed []*pod) {
	status := &f.job.Status
	f.succeeded = status.Succeeded + int32(len(newSucceeded)+len(f.next.UncountedTerminatedPods.Succeeded))
	f.failed = status.Failed + int32(len(f.next.UncountedTerminatedPods.Failed))
	for _, p := range newFailed {
		if f.ruling(p).counts() {
			f.failed++
		}
	}
	if f.indexed {
		f.indexes = f.sortIndexes()
		f.succeeded = int32(f.indexes.succeeded.Len())
	}
}

// valid reports whether the Pod can count for the Job: for an Indexed one it needs an index in
// range.
func (f *facts) valid(p *pod) bool {
	return !f.indexed || p.index != noIndex && p.index < f.completions
}

// isNew reports whether the status knows nothing of the Pod yet.
func (f *facts) isNew(p *pod) bool {
	return p.tracked && !f.listed.Has(p.UID) && f.valid(p)
}
