// Package hubstate reads and changes what the manager keeps of a hub Job. It's in two conditions of
// the Job's status, which belongs to whom spec.managedBy names, so that the Job's metadata and spec
// stay as its user wrote them:
//
//	type                 status  reason     message
//	jobferry.dev/Placed  True    Placed     the worker: east
//	                     True    Divided    the shards: east=0-499;west=500-999
//	                     False   NoRoom     why the Job waits for a worker; see the Waits below
//	jobferry.dev/State   True    Kept       a line for each other key: moved-from=west
//
// A value that has a line break, or begins with a quote, is quoted as Go quotes it.
//
// A condition that is older than its Job is another Job's: a backup of objects was restored with
// their status. It counts for nothing, and goes with the next write.
package hubstate

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The conditions.
const (
	// Placed says where a Job is placed, or why it isn't. Its transition time is since when. It's
	// missing of a Job that hasn't waited for a worker yet.
	Placed batchv1.JobConditionType = "jobferry.dev/Placed"
	// State has the other keys.
	State batchv1.JobConditionType = "jobferry.dev/State"
)

// Reasons of the conditions.
const (
	reasonPlaced  = "Placed"
	reasonDivided = "Divided"
	reasonKept    = "Kept"
)

// Wait is why a Job has no placement: the reason of the condition Placed. It has no numbers, and
// names no worker, so that it seldom changes.
type Wait string

// The Waits.
const (
	NotPlaced         Wait = "NotPlaced"
	NoRoom            Wait = "NoRoom"
	NoWorker          Wait = "NoWorker"
	InLine            Wait = "InLine"
	WorkerCleansUp    Wait = "WorkerCleansUp"
	Suspended         Wait = "Suspended"
	InvalidAnnotation Wait = "InvalidAnnotation"
)

// waitTexts are the messages of the condition Placed.
var waitTexts = map[Wait]string{
	NotPlaced:         "The Job isn't placed any more",
	NoRoom:            "No worker can take the Job now",
	NoWorker:          "No worker is there that could take the Job",
	InLine:            "Other Jobs go first",
	WorkerCleansUp:    "A worker has to remove an earlier mirror of the Job",
	Suspended:         "The Job is suspended",
	InvalidAnnotation: "An annotation of the Job can't be read",
}

// String is the message of the condition.
func (w Wait) String() string { return waitTexts[w] }

// Key names a value that the manager keeps.
type Key string

// The keys. The first three are in the condition Placed; a Job has one of them at most.
const (
	// Cluster is the placement: the name of the worker.
	Cluster Key = "cluster"
	// Shards is the placement of a Job that may run on several workers: its shards, such as
	// "east=500-999;west=0-499", the indexes as in a Job's status. Of a Job without indexes a shard
	// is a number of completions: "east=500;west=500".
	Shards Key = "shards"
	// Waits is the Wait of a Job that has no placement.
	Waits Key = "waits"
	// ShardsState is a JSON object with what else the hub keeps of the shards; see
	// shards.Placement. A Job that is placed as shards has it, even if it has no shard.
	ShardsState Key = "shards-state"
	// PlacedFor is the cluster selector that the Job was placed by. A change of the selector moves
	// the Job; a change of the worker's labels doesn't.
	PlacedFor Key = "placed-for"
	// MovedFrom is the worker that the Job was placed on before. The Job starts nowhere else until
	// that worker has no mirror of it any more.
	MovedFrom Key = "moved-from"
	// MovedAt is the time (RFC 3339) of the last move, and MovedWith the progress that the hub knew
	// of then.
	MovedAt   Key = "moved-at"
	MovedWith Key = "moved-with"
	// Vanished is the worker in which the mirror vanished, though Pods of it may have run.
	Vanished Key = "vanished"
	// FreshStart: mirrors that are created next start from zero. It's the MovedAt of the move that
	// set it.
	FreshStart Key = "fresh-start"
	// DeadlineSpent has the seconds of activeDeadlineSeconds that the Job had used until its last
	// move.
	DeadlineSpent Key = "deadline-spent"
	// Usage is the account of the Job: for how long its Pods ran in which worker. A JSON list; see
	// usage.Account.
	Usage Key = "usage"
)

// inState are the keys of the condition State, in the order of its lines.
var inState = []Key{MovedFrom, MovedAt, MovedWith, Vanished, FreshStart, DeadlineSpent, PlacedFor, ShardsState, Usage}

// Get returns a value; empty: the Job doesn't have it.
func Get(job *batchv1.Job, key Key) string {
	return get(job.Status.Conditions, key, job.CreationTimestamp)
}

func get(conditions []batchv1.JobCondition, key Key, created metav1.Time) string {
	switch key {
	case Cluster:
		return placement(conditions, reasonPlaced, created)
	case Shards:
		return placement(conditions, reasonDivided, created)
	case Waits:
		if c := find(conditions, Placed, created); c != nil && c.Status == corev1.ConditionFalse {
			return c.Reason
		}
		return ""
	}
	c := find(conditions, State, created)
	if c == nil {
		return ""
	}
	// Whoever may write a status can give it a million lines: none of them is looked at by itself.
	value, is := strings.CutPrefix(c.Message, string(key)+"=")
	if !is {
		if _, value, is = strings.Cut(c.Message, "\n"+string(key)+"="); !is {
			return ""
		}
	}
	value, _, _ = strings.Cut(value, "\n")
	return detached(unquoted(value))
}

// maxName is more than the name of a worker has, or a time.
const maxName = 256

// detached is a value that may be remembered, such as a worker's name: the message from which it
// was read isn't held with it, which may have a megabyte.
func detached(value string) string {
	if len(value) > maxName {
		return value
	}
	return strings.Clone(value)
}

func placement(conditions []batchv1.JobCondition, reason string, created metav1.Time) string {
	c := find(conditions, Placed, created)
	if c == nil || c.Status != corev1.ConditionTrue || c.Reason != reason {
		return ""
	}
	return c.Message
}

// WaitShown returns when the condition that says why a Job waits was written; zero: there is none.
func WaitShown(job *batchv1.Job) time.Time {
	c := find(job.Status.Conditions, Placed, job.CreationTimestamp)
	if c == nil || c.Status != corev1.ConditionFalse {
		return time.Time{}
	}
	return c.LastProbeTime.Time
}

// PlacedAt returns when a Job was placed where it is; zero: it isn't placed.
func PlacedAt(job *batchv1.Job) time.Time {
	c := find(job.Status.Conditions, Placed, job.CreationTimestamp)
	if c == nil || c.Status != corev1.ConditionTrue {
		return time.Time{}
	}
	return c.LastTransitionTime.Time
}

// Of returns our conditions of a Job, as if it were placed on one worker.
func Of(job *batchv1.Job, worker string) []batchv1.JobCondition {
	ours := []batchv1.JobCondition{{Type: Placed, Status: corev1.ConditionTrue, Reason: reasonPlaced, Message: worker}}
	if state := find(job.Status.Conditions, State, job.CreationTimestamp); state != nil {
		ours = append(ours, *state)
	}
	return ours
}

// IsOurs reports whether the manager keeps something in conditions of a type.
func IsOurs(t batchv1.JobConditionType) bool { return t == Placed || t == State }

// find returns a condition of ours of a Job that was created then; nil: there is none. One without
// a time isn't written yet.
func find(conditions []batchv1.JobCondition, t batchv1.JobConditionType, created metav1.Time) *batchv1.JobCondition {
	for i := range conditions {
		if c := &conditions[i]; c.Type == t && (c.LastTransitionTime.IsZero() || !c.LastTransitionTime.Before(&created)) {
			return c
		}
	}
	return nil
}

// Changes are values that change. Those that become empty are removed.
type Changes map[Key]string

// Set changes values in a Job that isn't written.
func Set(job *batchv1.Job, changes Changes) {
	job.Status.Conditions = changes.Conditions(job, job.Status.Conditions, time.Time{})
}

// Conditions returns conditions that a Job is to have, with ours as they are after the changes, at
// some time. Ours stand behind Kubernetes' own, but before the final one: some clients look at the
// last.
func (c Changes) Conditions(job *batchv1.Job, all []batchv1.JobCondition, at time.Time) []batchv1.JobCondition {
	created := job.CreationTimestamp
	if !at.IsZero() && at.Before(created.Time) {
		at = created.Time // the API server's clock is ahead
	}
	values := func(key Key) string {
		value, changes := c[key]
		switch {
		case changes:
			return value
		case c[Cluster] != "" && (key == Shards || key == ShardsState), c[Shards] != "" && key == Cluster:
			return "" // a placement takes the place of the other
		default:
			return get(all, key, created)
		}
	}
	placed := batchv1.JobCondition{Type: Placed, Status: corev1.ConditionTrue}
	switch worker, shards, wait := values(Cluster), values(Shards), Wait(values(Waits)); {
	case worker != "":
		placed.Reason, placed.Message = reasonPlaced, worker
	case shards != "":
		placed.Reason, placed.Message = reasonDivided, shards
	case wait == "" && find(all, Placed, created) == nil:
		placed.Type = "" // it never was
	default:
		wait = cmp.Or(wait, NotPlaced)
		placed.Status, placed.Reason, placed.Message = corev1.ConditionFalse, string(wait), wait.String()
	}
	state := batchv1.JobCondition{Type: State, Status: corev1.ConditionTrue, Reason: reasonKept, Message: stateText(values)}
	return arranged(all, created, at, placed, state)
}

// stateText is the message of the condition State.
func stateText(values func(Key) string) string {
	var text strings.Builder
	for _, key := range inState {
		value := values(key)
		if value == "" {
			continue
		}
		if text.Len() > 0 {
			text.WriteByte('\n')
		}
		text.WriteString(string(key))
		text.WriteByte('=')
		text.WriteString(quoted(value))
	}
	return text.String()
}

// arranged returns the conditions with ours in their place. One of ours that has nothing to say is
// left out.
func arranged(all []batchv1.JobCondition, created metav1.Time, at time.Time, ours ...batchv1.JobCondition) []batchv1.JobCondition {
	next := slices.DeleteFunc(slices.Clone(all), func(c batchv1.JobCondition) bool { return IsOurs(c.Type) })
	i := len(next)
	if i > 0 && isFinal(next[i-1]) {
		i--
	}
	for _, condition := range ours {
		if condition.Type == "" || condition.Type == State && condition.Message == "" {
			continue
		}
		next = slices.Insert(next, i, timed(find(all, condition.Type, created), condition, at))
		i++
	}
	if len(next) == 0 {
		return nil
	}
	return next
}

func isFinal(c batchv1.JobCondition) bool {
	return c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed)
}

// timed gives a condition its transition time. It changes with the placement, but not with the
// reason for which a Job waits, of which the probe time says since when it's that one.
func timed(old *batchv1.JobCondition, next batchv1.JobCondition, at time.Time) batchv1.JobCondition {
	isWait := next.Status == corev1.ConditionFalse
	if old != nil && old.Status == next.Status && old.Reason == next.Reason && old.Message == next.Message {
		return *old
	}
	next.LastTransitionTime = metav1.NewTime(at)
	if old != nil && old.Status == next.Status && (isWait || next.Type == State) {
		next.LastTransitionTime = old.LastTransitionTime
	}
	if isWait {
		next.LastProbeTime = metav1.NewTime(at)
	}
	return next
}

func quoted(value string) string {
	if strings.ContainsAny(value, "\n\r") || strings.HasPrefix(value, `"`) {
		return strconv.Quote(value)
	}
	return value
}

func unquoted(value string) string {
	if !strings.HasPrefix(value, `"`) {
		return value
	}
	if plain, err := strconv.Unquote(value); err == nil {
		return plain
	}
	return value
}
