package dispatch

import (
	"cmp"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/carry"
	"github.com/jobferry/jobferry/pkg/manager/usage"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/util/digest"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

// Plan is what is to be done about a Job now.
type Plan struct {
	// Situation is the name of the row that made this plan.
	Situation Situation
	// Reserve is the capacity that is reserved for the Job's Pods, by worker.
	Reserve []Reservation
	// Actions are carried out in order; the first that fails ends the plan.
	Actions []Action
	// Parts are the plans of the shards of a divided Job: none waits for another, nor do the Actions
	// wait for them.
	Parts []PartPlan
	// Cleanup are actions about mirrors that the Job has no use for, each in another worker. Neither
	// the Job nor one another waits for them.
	Cleanup []MirrorAction
	// Releases are the mirrors that workers are to remove, by Cleanup or because the Job waits for it.
	Releases []Release
	// Reports are made once the actions have succeeded.
	Reports []Report
	// Again: decide again at once when the actions have changed something.
	Again bool
	// After is when to reconcile again without any event; zero: only on an event.
	After time.Duration
	// AwaitsCapacity: reconcile again when a worker has more free capacity, or another state.
	AwaitsCapacity bool
	// AwaitsNamespace: reconcile again when the labels of the Job's namespace change.
	AwaitsNamespace bool
	// Behind: the mirror's status says more than the hub Job's, which waits to be written.
	Behind bool
	// HubBusy: it waits since the hub is busy; decide again when it isn't.
	HubBusy bool
	// Agreed is the digest of what the assigned worker's mirror and the Job were found to agree in;
	// zero: they don't, that's known, or it doesn't matter.
	Agreed digest.Digest
}

// add takes over all that another plan says beside its actions.
func (p *Plan) add(next Plan) {
	p.Releases = append(p.Releases, next.Releases...)
	p.Reports = append(p.Reports, next.Reports...)
	p.After = wake.Soonest(p.After, next.After)
	p.AwaitsCapacity = p.AwaitsCapacity || next.AwaitsCapacity
	p.Behind, p.HubBusy = p.Behind || next.Behind, p.HubBusy || next.HubBusy
	p.Agreed = cmp.Or(p.Agreed, next.Agreed)
}

// Reservation is capacity in a worker for the Pods of a Job, or of a shard of it.
type Reservation struct {
	Worker string
	Job    *batchv1.Job
}

// PartPlan is what is to be done about one shard's mirror now.
type PartPlan struct {
	// Part is the snapshot of the shard.
	Part *Snapshot
	// Situation is the name of the row that made this plan.
	Situation Situation
	Actions   []Action
	// Reports are made once these actions, those of all other parts and those of the whole Job have
	// succeeded.
	Reports []Report
}

// Action is one write, or a few that belong together.
type Action interface {
	// Worker is the name of the worker that the action writes to; empty: the hub.
	Worker() string
}

// onHub is embedded in the actions that write to the hub.
type onHub struct{}

// Worker implements Action.
func (onHub) Worker() string { return "" }

// Place chooses a worker for the Job and writes the placement to the hub Job.
type Place struct {
	onHub
	// Leave is the worker that the Job is moved away from, with the reason; empty: the Job is not
	// placed yet.
	Leave  string
	Reason string
	// Must: the Job cannot or should not stay, so an event says if no other worker fits. Without
	// it, the worker is passed over for a while: the scheduler would not see the reason by itself.
	Must bool
	// TimedOut: the worker had no node for the Job's Pods for as long as its own timeout says.
	TimedOut bool
	// RanUntil is when the Job is known to have run last in the worker that it leaves; zero: now.
	RanUntil time.Time
	// FreshStart: the Job starts from zero.
	FreshStart bool
}

// GoBack moves the Job to a worker that it prefers to its own, if one has had room for it for some
// time.
type GoBack struct {
	onHub
	// Leave is the worker that it's on.
	Leave string
	// For is how long a worker must have had room.
	For time.Duration
}

// Restore writes the placement of a Job that runs in a worker which its placement does not name:
// someone removed the placement, the hub's etcd was put back to a backup that doesn't have it, or
// the Job is to stay in the worker that it was moved away from.
type Restore struct {
	onHub
	To string
	// Shards are those of a divided Job, with those that its placement lacks; nil: it isn't divided.
	Shards *shards.Placement
	// Reason for the return of a moved Job.
	Reason string
}

// Divide brings the shards of a Job in line with what remains and with the room that workers have,
// and writes them to the hub Job.
type Divide struct {
	onHub
	// Drop are shards that are removed: their workers have no mirror, or are given up.
	Drop []Leave
	// Restart are workers whose shards are stopped in any case: their mirrors can't be brought in line
	// while they run.
	Restart []string
	// Behind: the hub Job doesn't show yet what its mirrors have completed.
	Behind bool
	// Stop are shards that are stopped, so that they can be removed, if another worker has room.
	Stop []Leave
}

// Leave is why a shard leaves its worker.
type Leave struct {
	Worker, Reason string
	// Must: the shard can't or shouldn't stay, so an event says if no other worker has room. Without
	// it, the worker is passed over for a while.
	Must bool
}

// WriteStatus writes the hub Job's status, and its account; nil: there is none.
type WriteStatus struct {
	onHub
	Patch   []byte
	Account usage.Account
	// Ends: it's the Job's end.
	Ends bool
}

// RemoveFinalizer removes our finalizer from the hub Job.
type RemoveFinalizer struct {
	onHub
	// Stopped: the Job has no Pods any more. While somebody else's finalizer keeps it, its status
	// shows none.
	Stopped bool
}

// SideBySide carries out actions in different workers: none of these waits for another one's
// answer. It fails if one of them does, and ends the plan if one does.
type SideBySide struct {
	onHub
	Actions []Action
}

// sideBySide adds actions that are carried out side by side.
func (p *Plan) sideBySide(actions []Action) {
	if len(actions) > 1 {
		actions = []Action{SideBySide{Actions: actions}}
	}
	p.Actions = append(p.Actions, actions...)
}

// At is the mirror that an action is about.
type At struct {
	Name string // of the worker
	// Mirror is nil where only the worker is meant.
	Mirror *batchv1.Job
}

// Worker implements Action.
func (a At) Worker() string { return a.Name }

func (a At) at() At { return a }

// MirrorAction is an action about one mirror.
type MirrorAction interface {
	Action
	at() At
}

// ConfirmLeft makes sure, by a live read, that a worker has no mirror of a Job: its cache may be
// behind, or the mirror may have lost its marks. A mirror that is found ends the plan.
type ConfirmLeft struct{ At }

// SeekUnmarked looks for a mirror that has lost its marks: see Worker.Sought. It's marked again if
// its hub Job is the plan's, and deleted if a live read of the hub shows that there is none.
type SeekUnmarked struct{ At }

// CreateMirror creates the Job's mirror: only if the hub's last answer, or a live read of it, shows
// the Job unfinished, not being deleted, and placed on this worker. At has the mirror as Project
// made it. The apply adds a random id (see mirror.SelectPods), and recent fields, which need a
// read.
type CreateMirror struct{ At }

// SeedMirror writes the progress known at the hub into the status of a mirror that is suspended.
type SeedMirror struct {
	At
	Status batchv1.JobStatus
}

// CarryObjects copies what the hub Job's Pod template refers to, of some kinds, into the worker.
type CarryObjects struct {
	At
	Kinds []carry.Kind
}

// PatchMirror changes a mirror in place.
type PatchMirror struct {
	At
	Patch mirror.Patch
}

// PatchRecentFields changes recent fields of a mirror in place, to those of a live read of the hub
// Job.
type PatchRecentFields struct {
	At
	Patch mirror.PatchRecent
}

// DeleteMirror deletes a mirror, with its UID as precondition.
type DeleteMirror struct {
	At
	Propagation metav1.DeletionPropagation
	// Suspend: it is suspended first.
	Suspend bool
	// VerifyGone: only if a live read of the hub shows no Job of this UID.
	VerifyGone types.UID
	// VerifyPart: only if a live read of the hub shows that the Job has the shard as the snapshot
	// does.
	VerifyPart bool
	// VerifyStale: only if a live read of the hub shows that the Job is not placed on this worker.
	VerifyStale bool
	// Repeats: what the mirror has completed since its Job was moved is done again elsewhere. It is
	// counted by the last known state of the mirror: when its worker has just been reconnected,
	// the snapshot may be older than the answer to its suspension.
	Repeats bool
}

// SuspendMirror suspends a stale mirror, or that of a shard that is stopping: only if a live read
// of the hub shows that the Job is not placed on this worker, or that the shard is stopping.
type SuspendMirror struct {
	At
	// Exactly: it's suspended where the Job is placed, if it still is as At has it.
	Exactly bool
}

// UnfenceMirror removes the mark of the fence from a mirror: only if a live read of the hub shows
// that the Job is placed on this worker.
type UnfenceMirror struct{ At }

// ReadErrors reads from a worker's events why its Job controller cannot create a mirror's Pods, or
// why a node cannot prepare one of them.
type ReadErrors struct {
	At

	Pod types.UID // empty: there are none
}

// LetGo removes the finalizer from a mirror that was kept until the hub knows its end.
type LetGo struct{ At }

// DisownMirror removes the hub's label and annotations from a mirror, and its finalizer.
type DisownMirror struct{ At }

// Report is what is reported about a Job on the hub: once, for as long as its text stays the same.
type Report struct {
	// Reason is the event's reason.
	Reason string
	// On is the hub Job that the report is about; nil: the plan's.
	On *batchv1.Job
	// About tells reports apart that hold at the same time for the same reason.
	About string
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
