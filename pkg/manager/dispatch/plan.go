package dispatch

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/mirror"
)

// Plan is what is to be done about a Job now.
type Plan struct {
	// Situation is the name of the situation that made this plan.
	Situation Situation
	// Actions are carried out in order; the first that fails ends the plan.
	Actions []Action
	// Reports are told once the actions have succeeded.
	Reports []Report
	// Again: look again at once, when the actions have changed something.
	Again bool
	// After is the wake-up to look again without any event, see package wake.
	After time.Duration
	// AwaitsRoom: look again when a worker has more room, or another state.
	AwaitsRoom bool
	// Behind: the mirror's status says more than the hub Job's, which waits to be written.
	Behind bool
}

// Action is one write, or a few that belong together.
type Action interface{ action() }

// Place chooses a worker for the Job and writes the choice down on the hub.
type Place struct {
	// At is the worker, if there's nothing to choose: the one that runs it.
	At string
	// Leave is the worker that the Job is moved away from, with the reason; empty: it isn't placed
	// yet.
	Leave  string
	Reason string
	// Must: if nothing else fits, that is told: the Job can't stay where it is, or shouldn't.
	// Whoever chooses a worker sees the reason by itself, and when it's over; any other reason is
	// remembered for a while.
	Must bool
	// RanUntil is when the Job is known to have run last where it was; zero: now.
	RanUntil time.Time
	// FreshStart: it starts from zero.
	FreshStart bool
}

// CreateMirror creates the Job's mirror.
type CreateMirror struct {
	Worker string
	Mirror *batchv1.Job
	// VerifyWanted: only when a live read of the hub shows the Job unfinished, not being deleted,
	// and placed on this worker.
	VerifyWanted bool
}

// SeedMirror writes the progress known at the hub into the status of a mirror that has not started.
type SeedMirror struct {
	Worker string
	Mirror *batchv1.Job
	Status batchv1.JobStatus
}

// CarryObjects brings what the Pod template refers to into the worker.
type CarryObjects struct {
	Worker string
	Mirror *batchv1.Job
}

// PatchMirror changes a mirror in place.
type PatchMirror struct {
	Worker string
	Mirror *batchv1.Job
	Patch  mirror.Patch
}

// DeleteMirror deletes a mirror, with its UID as precondition.
type DeleteMirror struct {
	Worker      string
	Mirror      *batchv1.Job
	Propagation metav1.DeletionPropagation
	// VerifyGone: only when a live read of the hub shows no Job of this UID.
	VerifyGone types.UID
	// VerifyElsewhere: only when a live read of the hub shows that the Job isn't placed on this
	// worker.
	VerifyElsewhere bool
	// Repeats: what the mirror has completed since its Job was moved is made again elsewhere. It's
	// counted by the last that is known of the mirror: when its worker has just come back, the
	// snapshot may be older than the answer to its suspension.
	Repeats bool
}

// SuspendMirror suspends a copy of the Job that isn't at home: only when a live read of the hub
// shows that the Job isn't placed on this worker.
type SuspendMirror struct {
	Worker string
	Mirror *batchv1.Job
}

// ConfirmMirror takes the mark of the fence off the mirror at home: only when a live read of the
// hub shows that the Job is placed on this worker.
type ConfirmMirror struct {
	Worker string
	Mirror *batchv1.Job
}

// AskWhy asks a worker why its Job controller can't create a mirror's Pods.
type AskWhy struct {
	Worker string
	Mirror *batchv1.Job
}

// DisownMirror takes the hub's label and annotations off a mirror.
type DisownMirror struct {
	Worker string
	Mirror *batchv1.Job
}

// WriteStatus writes the hub Job's status.
type WriteStatus struct {
	Patch []byte
}

// LetGo takes the finalizer off the hub Job.
type LetGo struct{}

func (Place) action()         {}
func (CreateMirror) action()  {}
func (SeedMirror) action()    {}
func (CarryObjects) action()  {}
func (PatchMirror) action()   {}
func (DeleteMirror) action()  {}
func (SuspendMirror) action() {}
func (ConfirmMirror) action() {}
func (DisownMirror) action()  {}
func (AskWhy) action()        {}
func (WriteStatus) action()   {}
func (LetGo) action()         {}

// Report is what is told about a Job on the hub. It is told once, for as long as its text stays the
// same.
type Report struct {
	// Reason is the event's reason, in CamelCase.
	Reason string
	// Message is for people.
	Message string
	// Warning: something needs attention.
	Warning bool
	// Rule is the rule that the worker's status broke; it is counted in
	// jobferry_status_rejected_total.
	Rule mirror.Rule
}

// RuleHub stands for the hub's API server itself, which rejected a status that pkg/mirror let
// through.
const RuleHub mirror.Rule = "hub"

func note(reason, message string) Report { return Report{Reason: reason, Message: message} }
func warn(reason, message string) Report {
	return Report{Reason: reason, Message: message, Warning: true}
}
