package dispatch

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/carry"
	"github.com/jobferry/jobferry/pkg/manager/group"
	"github.com/jobferry/jobferry/pkg/manager/usage"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/recentfields"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/util/digest"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// Snapshot is all that a decision is made from: values, read once.
type Snapshot struct {
	// Now is the time of the decision, by the hub's clock.
	Now time.Time
	// Origin is the id of this hub.
	Origin v1alpha1.Origin
	// HubKeys are those of labels and annotations that stay on it.
	HubKeys mirror.HubKeys
	// Key is the Job's namespace and name, on the hub and in the workers.
	Key types.NamespacedName
	// Job is the hub Job; nil: there is none of that name.
	Job *batchv1.Job
	// Recent are the recent fields of the hub Job's spec as it is; nil: they are those that its
	// mirrors were written with, or it has no mirror.
	Recent *recentfields.Fingerprints
	// Deletion is the propagation policy with which the hub Job is being deleted; empty: it is not,
	// or its watch has not shown that yet.
	Deletion metav1.DeletionPropagation

	// Gone is the hub Job of this name that the hub has no more; zero: none was seen to go.
	Gone Gone

	// Assigned is the worker that the Job's placement names; nil: the Job is not placed, or divided.
	Assigned *Worker
	// Divided is the placement of a Job that is placed as shards; nil: it is not.
	Divided *Divided
	// Part is the shard that this snapshot is about; nil: the whole Job. Job is shards.Part then.
	Part *Part
	// Others are the other workers that have a mirror of this name and origin, and the worker that
	// the Job was moved from, in order of names.
	Others []Worker

	// LastStatusWrite is when this process last wrote the hub Job's status; zero: never.
	LastStatusWrite time.Time
	// UnshownSince is when the first change of a mirror arrived that the hub Job does not show yet;
	// zero: none, or not known.
	UnshownSince time.Time
	// WritesInFlight is the number of writes of placements and statuses to the hub that haven't been
	// answered.
	WritesInFlight int
	// PassedOver has, by worker, the reason why the Job cannot be there for now.
	PassedOver map[string]string
	// NotDispatched says why Jobs of this namespace are not dispatched; empty: they are.
	NotDispatched string
	// Admission is what Kueue decides about the Job.
	Admission Admission
	// Used is what the Job's Pods used.
	Used Used
	// Accounted is the account that the hub Job has.
	Accounted usage.Account
	// Group is what is known of the Jobs that belong together with this one.
	Group Group
	// Return is what is known of a Job that is to go back to a worker that it prefers; nil: it isn't.
	Return *Return
	// Timing are the options that decisions depend on.
	Timing Timing

	// missing is what the placement lacks, once Decide has found it out.
	missing missing
}

// Group is what is known of the Jobs that belong together with one. Its zero value is no group.
type Group struct {
	// ID names it.
	ID group.ID
	// Elsewhere is another worker in which Jobs of it may run; empty: there is none.
	Elsewhere string
}

// Gone is a hub Job whose end its watch has shown.
type Gone struct {
	UID types.UID
	// Deletion is the propagation policy with which it was deleted.
	Deletion metav1.DeletionPropagation
	// Mirrors are those that it had by its account, or that workers hadn't removed in time, and that
	// may be left. Of a worker that has very many, some are remembered.
	Mirrors []usage.ID
}

// MirrorIn is what is known of a mirror in a worker that the worker's watch doesn't show; nil:
// there is none.
func (g *Gone) MirrorIn(worker string, key types.NamespacedName) *batchv1.Job {
	for _, id := range g.Mirrors {
		if id.Worker == worker {
			return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
				Namespace: key.Namespace, Name: key.Name, UID: id.UID,
				Annotations: map[string]string{v1alpha1.AnnotationHubUID: string(g.UID)},
			}}
		}
	}
	return nil
}

// Worker is a worker as one Job sees it: its state, and what is known of the Job's mirror there.
type Worker struct {
	// Name is the name of the WorkerCluster.
	Name string
	// Registered: a WorkerCluster of that name is known.
	Registered bool
	// Synced: the worker is connected, its mirrors have been listed, and this process may write there.
	// Only then the absence of a mirror means that there is none.
	Synced bool
	// Connecting: the first connection to the worker is still being made.
	Connecting bool
	// Trouble says in a few words why the worker is not connected.
	Trouble string
	// JobController runs the mirrors there.
	JobController v1alpha1.JobController
	// Minor is the worker's Kubernetes version, 1.Minor; zero: unknown.
	Minor int
	// TookOver: this manager writes there in the place of one that its hub doesn't know, so that the
	// hub's etcd was put back, and the worker may have what the hub has forgotten.
	TookOver bool
	// HeldElsewhere: the manager of another hub writes there, or of this one before its etcd was put
	// back. The worker isn't Synced, but what it has is known.
	HeldElsewhere bool
	// Removal is set while the worker is being removed.
	Removal v1alpha1.RemovalPolicy
	// Loss is the hub's judgement of a worker that is not connected.
	Loss Loss
	// Unwanted says why the Job is to leave this worker as soon as another fits, or, of a worker that
	// it isn't placed on, why it wouldn't be; empty: neither.
	Unwanted string
	// ControllerSeen is when the worker's Job controller was last seen to start or end a Job, by the
	// hub's clock; zero: not seen yet.
	ControllerSeen time.Time
	// Mirror is the mirror of the hub Job in this worker. If the worker removed it before the hub saw
	// its end, it's the last state; nil: none.
	Mirror *batchv1.Job
	// Orphan is the mirror of another hub Job of this name, which is gone or never was; nil: none.
	Orphan *batchv1.Job
	// CopyOf is the hub Job of another name that the orphan stands for; nil: there is none.
	CopyOf *batchv1.Job
	// Cleanups counts the attempts to remove a mirror that the Job has no use for.
	Cleanups Attempts
	// ReleaseSince is since when the worker is to remove a mirror; zero: it is not. Times in which it
	// was not connected, or the Job waited for a place of it, are left out.
	ReleaseSince time.Time
	// Refusal is why the worker last refused to stop or delete a mirror; empty: it did not.
	Refusal string

	// Sought: Pods there are those of a mirror of this name that the worker's watch doesn't show, or
	// the Job has ended without one that it shows. Nobody has looked yet whether it has lost its
	// marks.
	Sought bool

	// Confirmed: this process has asked the worker itself for a mirror that its watch doesn't show.
	Confirmed bool
	// TakenBack is the last state of a mirror that is taken back from there, as it can't be followed;
	// nil: none. Set for the assigned worker, and the one that the Job was moved from.
	TakenBack *batchv1.Job

	// The fields below are set for the assigned worker only.

	// Own: this process has created the mirror. Replaced: it has deleted the last one.
	Own, Replaced bool
	// Missed: the worker's watch shows the mirror no more, and nobody has deleted it; or it's being
	// taken back. Unseen: this process hasn't seen a mirror there, nor asked the worker for one.
	Missed, Unseen bool
	// Agreed is the digest of what the mirror and the Job agreed in at the last look; zero: unknown.
	Agreed digest.Digest
	// Elsewhere are the Pods that the mirror counts and that ended in other workers: those of other
	// shards, and those that a moved Job brought along.
	Elsewhere mirror.Ended
	// Fits: the worker has free capacity for the Pods of a Job that is to be resumed.
	Fits bool
	// StartTimeout is how long the first Pod of a Job may take to run there.
	StartTimeout time.Duration
	// Stockout: Pods of the Job's shape didn't start there for that long, and no other Job is trying.
	Stockout bool
	// Pods is what is known of the mirror's Pods that do not run.
	Pods PodsReport
	// Carry is what is known of the objects that are carried along with the Job.
	Carry Carry
	// Unmet is the last patch of the mirror, if the worker did not take it as it was; zero: it did.
	Unmet Unmet
	// Patches counts the patches of the mirror, Creations the mirrors created.
	Patches, Creations Attempts
	// StatusRejected: the hub's API server rejected the status that follows from the two objects as
	// they are. Set for the reflected worker.
	StatusRejected bool
}

// Loss is the hub's judgement of a worker that is not connected.
type Loss struct {
	// Lost: the worker's Jobs continue elsewhere.
	Lost bool
	// Isolated: the worker would be lost, but no worker is connected: the hub suspects itself.
	Isolated bool
	// Since is when the worker was first found not to be connected.
	Since time.Time
	// At is when the worker will be lost, or judged again; zero: not known.
	At time.Time
}

// Unmet is a patch of a mirror that the worker's admission changed back, or refused.
type Unmet struct {
	// Diff stands for the patch: the same one waits before it is tried again. A patch may be as large
	// as a Job.
	Diff digest.Digest
	// Notes say what became of it, the first of them, and how many more there are.
	Notes []mirror.Note
	// Tries counts how often it was tried in a row.
	Tries Attempts
}

// maxUnmetNotes is how many notes of a patch are kept, and maxUnmetField how many bytes of a
// field's name: a Job may have tens of thousands of annotations, and a worker may name one of any
// length.
const maxUnmetNotes, maxUnmetField = 20, 512

// Again returns the patch after one more attempt, which came out like this.
func (u Unmet) Again(diff string, notes []mirror.Note, now time.Time) Unmet {
	of := digest.Of(diff)
	if u.Diff != of {
		u.Tries.Count = 0
	}
	kept := slices.Clone(notes[:min(len(notes), maxUnmetNotes)])
	for i := range kept {
		kept[i].Field = text.Clean(kept[i].Field, maxUnmetField)
	}
	if more := len(notes) - maxUnmetNotes; more > 0 {
		kept = append(kept, mirror.Note{Field: fmt.Sprintf("%d more fields", more), Message: "likewise"})
	}
	return Unmet{Diff: of, Notes: kept, Tries: Attempts{Count: u.Tries.Count + 1, Last: now}}
}

// wait is how long a patch has to wait, as the worker did not take it before; zero or less: not at
// all. The first time it's so long, and then twice as long each time.
func (u *Unmet) wait(diff string, first time.Duration, now time.Time) time.Duration {
	if u.Tries.Count == 0 || u.Diff != digest.Of(diff) {
		return 0
	}
	return u.Tries.Last.Add(doubled(first, u.Tries.Count-1, maxUnmetBackoff)).Sub(now)
}

// PodsReport is what a worker says about the Pods of a mirror that wait.
type PodsReport struct {
	// Known: the worker's Pods are watched, and Report is what that shows.
	Known bool
	placement.Report
	// WaitingSince is since when the mirror has been found to wait for a Pod to run, by the hub's
	// clock; zero: it does not wait.
	WaitingSince time.Time
	// Halt is how the mirror was last found to be halted, since HaltedSince by the hub's clock.
	Halt        Halt
	HaltedSince time.Time
	// Asked: the worker's events were read for why there are no Pods, or why Preparing is still being
	// prepared; Answer is what they say.
	Asked  bool
	Answer string
}

// Carry is what is known of the objects that are carried along with a Job to a worker.
type Carry struct {
	// Kinds are those that the Pod template refers to and the WorkerCluster allows. What the worker
	// says about that does not count.
	Kinds []carry.Kind
	// Current: everything has been carried, and no source has changed since.
	Current bool
	// After is in what time a change of a source is looked at; zero: none has changed.
	After time.Duration
	// Blocked says what keeps the Job's Pods from starting.
	Blocked []string
	// Notes are worth an event.
	Notes []string
}

// Timing are the delays and timeouts of decisions.
type Timing struct {
	// ProgressFloor is the least time between two status writes of one Job that only report
	// progress, and the longest that the announcement of its end waits for the end itself; more
	// while many writes to the hub are in flight. Default 500ms.
	ProgressFloor time.Duration
	// StuckNotice is how long a mirror may be without a Pod before the reason is shown on the hub
	// Job; at most 2s if there are Pods, of which the worker says why none can start. Default 30s.
	StuckNotice time.Duration
	// StuckTimeout is how long a mirror may be without a running Pod before its Job is moved to
	// another worker. Default 5m.
	StuckTimeout time.Duration
	// ReleaseTimeout is how long a worker may take to remove the mirror of a Job that is deleted or
	// moved away, beside the grace period of the Job's Pods. After that the hub waits for it no
	// longer. Default 1m.
	ReleaseTimeout time.Duration
	// Recheck is how often an unfinished Job is reconciled without any event. Default 10m.
	Recheck time.Duration
}

// DefaultTiming returns the defaults.
func DefaultTiming() Timing {
	return Timing{
		ProgressFloor:  500 * time.Millisecond,
		StuckNotice:    30 * time.Second,
		StuckTimeout:   5 * time.Minute,
		ReleaseTimeout: time.Minute,
		Recheck:        10 * time.Minute,
	}
}

// SetMirror sets the Job of this name and origin that a worker has, as its mirror or its orphan;
// nil: it has none. A Job that doesn't say which hub Job it stands for isn't ours, whatever its
// label says.
func (s *Snapshot) SetMirror(w *Worker, found *batchv1.Job) {
	switch {
	case found == nil || mirror.HubUID(found) == "":
	case !isAbsent(s) && mirror.Owns(s.Origin, s.Job.UID, found) == mirror.Ours:
		w.Mirror = found
	default:
		w.Orphan = found
	}
}

// IsEndedBy reports whether the hub Job, or a shard of it, takes its end from the last state of a
// mirror that is gone: the worker removed it before the hub had seen that, as a TTL there does. One
// that is being deleted shows no end.
func (s *Snapshot) IsEndedBy(last *batchv1.Job) bool {
	if last == nil || s.Job.DeletionTimestamp != nil || mirror.Owns(s.Origin, s.Job.UID, last) != mirror.Ours {
		return false
	}
	if s.Part != nil {
		return mirror.Finished(last) && !s.Part.IsOutdated(s.Part.HubJob, last) && shards.Remaining(s.Part.HubJob, s.Part.Shard).Len() > 0
	}
	if isPart(last) {
		return false
	}
	next, is := mirror.Reflect(s.Job, last, s.Now).(mirror.Next)
	return is && mirror.Finished(&batchv1.Job{Status: next.Status})
}

// progressOf is what the hub has yet to learn from the mirror that was taken back from a worker.
func (s *Snapshot) progressOf(w *Worker) (next mirror.Next, is bool) {
	if w.Mirror != nil || w.TakenBack == nil || s.Part != nil || isPart(w.TakenBack) ||
		mirror.Owns(s.Origin, s.Job.UID, w.TakenBack) != mirror.Ours {
		return next, false
	}
	next, is = mirror.Reflect(s.Job, w.TakenBack, s.Now).(mirror.Next)
	return next, is
}

// takenProgress is what the hub has yet to learn from a mirror that was taken back from the worker,
// or from the one that the Job was moved from.
func (s *Snapshot) takenProgress(w *Worker) (next mirror.Next, is bool) {
	if next, is = s.progressOf(w); is || s.Part != nil {
		return next, is
	}
	if former := s.former(); former != nil {
		return s.progressOf(former)
	}
	return next, false
}

// target is what Project and Drift need to know of a worker.
func (s *Snapshot) target(w *Worker) mirror.Target {
	target := mirror.Target{Origin: s.Origin, HubKeys: s.HubKeys, JobController: w.JobController, Minor: w.Minor, Recent: s.Recent}
	if s.Part != nil {
		target.Indexes = ptr.To(s.Part.Asked().String())
	}
	return target
}

// AssignedWorkers returns the workers that the Job's placement names.
func (s *Snapshot) AssignedWorkers() []*Worker {
	if s.Assigned != nil {
		return []*Worker{s.Assigned}
	}
	var all []*Worker
	if s.Divided != nil {
		for i := range s.Divided.Shards {
			all = append(all, s.Divided.Shards[i].Part.Assigned)
		}
	}
	return all
}

// isAssigned reports whether the Job's placement names a worker.
func (s *Snapshot) isAssigned(w *Worker) bool { return slices.Contains(s.AssignedWorkers(), w) }

// isPlaced reports whether the Job has a placement.
func (s *Snapshot) isPlaced() bool { return s.Assigned != nil || s.Divided != nil }

// Workers returns the assigned workers, if any, and all others.
func (s *Snapshot) Workers() []*Worker {
	all := s.AssignedWorkers()
	for i := range s.Others {
		all = append(all, &s.Others[i])
	}
	return all
}

// isMovedFrom reports whether the Job was last moved away from a worker.
func (s *Snapshot) isMovedFrom(worker string) bool {
	return hubstate.Get(s.Job, hubstate.MovedFrom) == worker
}
