package dispatch

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// Snapshot is all that a decision is made from: values, read once.
type Snapshot struct {
	// Now is the time of the decision, by the hub's clock.
	Now time.Time
	// Origin is the id of this hub.
	Origin v1alpha1.Origin
	// Key is the Job's namespace and name, on the hub and in the workers.
	Key types.NamespacedName
	// Job is the hub Job; nil: there is none of that name.
	Job *batchv1.Job
	// Orphan: the hub Job is being deleted, and its Pods shall stay.
	Orphan bool

	// Home is the worker that the Job is placed on; nil: not placed.
	Home *Seat
	// Elsewhere are the other workers that hold a mirror of this name and origin, and the worker
	// that the Job was moved from, in order of names.
	Elsewhere []Seat

	// LastStatusWrite is when the hub Job's status was last written by this process; zero: never.
	LastStatusWrite time.Time
	// MirrorChanged is when the first of the mirror's changes arrived that the hub Job doesn't show
	// yet; zero: none, or that isn't known.
	MirrorChanged time.Time
	// HubBusy is how much longer than the quickest writes to the hub have taken of late.
	HubBusy time.Duration
	// PassedOver tells, by worker, why the Job can't be there for now.
	PassedOver map[string]string
	// Pods is what is known of the mirror's Pods that don't run.
	Pods PodsReport
	// Carry is what is known of the objects that go along with the Job.
	Carry Carry
	// Fits: the home has room for the Pods of a Job that is to be resumed.
	Fits bool
	// Admission is what Kueue decides about the Job; zero without Kueue.
	Admission Admission

	// Unmet tells of the last patch of the mirror that the worker didn't take as it was; zero: it
	// took it, or that's long ago.
	Unmet Unmet
	// Patches tells how often the mirror was patched, Mirrors how often one was created.
	Patches, Mirrors Tries
	// StatusRejected: the hub rejected the status that follows from the two objects as they are.
	StatusRejected bool

	// Timing are the options that decisions depend on.
	Timing Timing
}

// Seat is a worker as one Job sees it.
type Seat struct {
	// Worker is the name of the WorkerCluster.
	Worker string
	// Registered: a WorkerCluster of that name is known.
	Registered bool
	// Synced: the worker is in touch, and its mirrors have been listed; only then the absence of a
	// mirror means that there is none.
	Synced bool
	// Connecting: the worker isn't in touch because there was no time for it yet.
	Connecting bool
	// Trouble says in a few words why the worker isn't in touch.
	Trouble string
	// JobController is who runs the mirrors there.
	JobController v1alpha1.JobController
	// Minor is the worker's Kubernetes version, 1.Minor; zero: unknown.
	Minor int
	// Removal is set while the worker is being removed.
	Removal v1alpha1.RemovalPolicy
	// Loss is what is made of a worker that isn't in touch.
	Loss Loss
	// Unwanted says why the Job is to leave this worker as soon as there's another for it; empty:
	// it isn't. Set for the home only.
	Unwanted string
	// LastStart is when the worker's Job controller was last seen to start a Job, by the hub's
	// clock; zero: not seen yet.
	LastStart time.Time
	// Mirror is the Job of this name and origin in the worker; nil: none.
	Mirror *batchv1.Job
}

// Loss is what is made of a worker that isn't in touch.
type Loss struct {
	// Lost: it's given up.
	Lost bool
	// Isolated: it would be, but no worker is in touch: that may be the hub's fault.
	Isolated bool
	// Since is when the worker was first out of touch.
	Since time.Time
	// At is when it will be given up, or looked at again; zero: that isn't known.
	At time.Time
}

// Unmet is a patch of a mirror that the worker's admission changed back, or refused.
type Unmet struct {
	// Diff is the patch: the same one isn't tried again.
	Diff string
	// Notes say what became of it.
	Notes []mirror.Note
}

// PodsReport is what a worker tells about the Pods of a mirror that wait.
type PodsReport struct {
	// Known: the worker's Pods are watched.
	Known bool
	// Unschedulable is the number of Pods that the scheduler found no node for.
	Unschedulable int
	// WaitingSince is since when the mirror has been found to be waiting for its first Pod to run,
	// by the hub's clock; zero: it isn't.
	WaitingSince time.Time
	// Message is the scheduler's reason.
	Message string
	// Hindered is the number of Pods that their nodes can't start, and Hindrance why.
	Hindered  int
	Hindrance string
	// EverRan: a container of the mirror's Pods has run.
	EverRan bool
	// Asked: the worker was asked why there are no Pods; Refusal is its answer.
	Asked   bool
	Refusal string
}

// Timing are the delays and time-outs of decisions.
type Timing struct {
	// ProgressFloor is the least time between two status writes of one Job that only report
	// progress, and the most that the announcement of its end waits for the end itself; more while
	// the hub is busy. Default 500ms.
	ProgressFloor time.Duration
	// StuckNotice is how long a mirror may be without a running Pod before the reason is shown on
	// the hub Job. Default 30s.
	StuckNotice time.Duration
	// StuckTimeout is how long a mirror may be without a running Pod before its Job is moved to
	// another worker. Default 5m.
	StuckTimeout time.Duration
	// Recheck is how often an unfinished Job is looked at without any event. Default 10m.
	Recheck time.Duration
}

// DefaultTiming returns the defaults.
func DefaultTiming() Timing {
	return Timing{
		ProgressFloor: 500 * time.Millisecond,
		StuckNotice:   30 * time.Second,
		StuckTimeout:  5 * time.Minute,
		Recheck:       10 * time.Minute,
	}
}

// owns: the mirror is that of exactly this hub Job.
func (s *Snapshot) owns(m *batchv1.Job) bool {
	return mirror.Owns(s.Origin, s.Job.UID, m) == mirror.Ours
}

// target is what Project and Drift need to know of a seat.
func (s *Snapshot) target(seat *Seat) mirror.Target {
	return mirror.Target{
		Origin:        s.Origin,
		JobController: seat.JobController,
		Minor:         seat.Minor,
	}
}
