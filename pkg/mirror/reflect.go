package mirror

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/mirror/intervals"
)

// staleCountersAfter is how long after a mirror's end, and after the Pods' grace period, counters
// that still show Pods are taken for stale: Job controllers of 1.30 and before end a Job with Pods
// left, and never update it again.
const staleCountersAfter = time.Minute

// Verdict is the result of Reflect: Next, Unchanged, Deferred or Violation.
type Verdict interface{ verdict() }

// Next is a status that the hub's API server accepts, and that differs from the hub Job's.
type Next struct {
	Status batchv1.JobStatus
	Change Change
}

// Unchanged means that the hub Job already shows the mirror's status.
type Unchanged struct{}

// Deferred means that the mirror's status can't be shown yet.
type Deferred struct {
	Why Why
	// Until is when to reflect again, even if the mirror doesn't change. Zero means when it
	// changes.
	Until time.Time
}

// Violation means that the mirror's status breaks a rule. The hub Job keeps its status; a retry is
// of no use until one of the two objects changes.
type Violation struct {
	Rule    Rule
	Message string
}

func (Next) verdict()      {}
func (Unchanged) verdict() {}
func (Deferred) verdict()  {}
func (Violation) verdict() {}

// Change classifies a Next, so that mere progress can be written less often.
type Change string

const (
	// Progress changes counters and indexes only; not conditions, so not the announcement of the end.
	Progress Change = "Progress"
	// Transition changes conditions or times. A Job has only a few.
	Transition Change = "Transition"
)

// IsProgress reports whether an update changed only counters, indexes and the announcement of the
// end, and neither succeeded nor failed fell. A Job's controller alone changes these.
func IsProgress(before, after *batchv1.Job) bool {
	falls := after.Status.Succeeded < before.Status.Succeeded || after.Status.Failed < before.Status.Failed
	return !falls && equality.Semantic.DeepEqual(withoutProgress(before), withoutProgress(after))
}

func withoutProgress(job *batchv1.Job) *batchv1.Job {
	rest := *job
	rest.ResourceVersion, rest.ManagedFields = "", nil
	rest.Status = batchv1.JobStatus{
		StartTime: job.Status.StartTime, CompletionTime: job.Status.CompletionTime,
		Conditions: slices.DeleteFunc(slices.Clone(job.Status.Conditions), AnnouncesEnd),
	}
	return &rest
}

// AnnouncesEnd reports whether a condition says that its Job will end.
func AnnouncesEnd(c batchv1.JobCondition) bool {
	return c.Type == success.interim || c.Type == failure.interim
}

// Why is the reason of a Deferred.
type Why string

const (
	// WhyNotStarted: no controller has written to the mirror yet.
	WhyNotStarted Why = "MirrorNotStarted"
	// WhyAwaitingSeed: a moved Job's mirror is suspended and doesn't have the progress made
	// elsewhere yet.
	WhyAwaitingSeed Why = "MirrorAwaitsProgress"
	// WhyDeleting: the mirror is being deleted; the Pods that this ends aren't the Job's result.
	WhyDeleting Why = "MirrorDeleting"
	// WhyPodsRemain: the mirror has ended, but some of its Pods haven't.
	WhyPodsRemain Why = "PodsRemain"
)

// ruleOutcomeFinal: a hub Job that has ended, or has a condition that leads to its end, isn't taken
// back by its mirror. (RejectDisablingTerminalCondition.)
const ruleOutcomeFinal Rule = "outcome-final"

// Reflect derives the hub Job's next status from its mirror's. The caller has checked that the
// mirror belongs to the hub Job; see Owns.
func Reflect(hub, mirror *batchv1.Job, now time.Time) Verdict {
	if Finished(hub) {
		if Finished(mirror) && OutcomeOf(mirror) == OutcomeOf(hub) {
			return Unchanged{}
		}
		return Violation{ruleOutcomeFinal, "the Job has ended on the hub, the mirror doesn't agree"}
	}
	if why := notYet(hub, mirror); why != "" {
		return Deferred{Why: why}
	}
	r := newReflection(hub, mirror, now)
	if v, broken := firstBroken(inputRules, r); broken {
		return v
	}
	for _, apply := range steps {
		apply(r)
	}
	return r.conclude()
}

// Check returns the input rule that a mirror breaks, if any.
func Check(hub, mirror *batchv1.Job, now time.Time) (broken Violation, is bool) {
	return firstBroken(inputRules, newReflection(hub, mirror, now))
}

// notYet returns why the mirror can't be reflected at all, or "".
func notYet(hub, mirror *batchv1.Job) Why {
	switch {
	case mirror.DeletionTimestamp != nil && !EndedByItself(mirror):
		return WhyDeleting
	case blank(&mirror.Status):
		return WhyNotStarted
	case awaitsSeed(hub, mirror):
		return WhyAwaitingSeed
	default:
		return ""
	}
}

// EndedByItself reports whether a mirror that's being deleted had ended before: the Pods that its
// deletion ends aren't the Job's result. Both times are from the worker's clock.
func EndedByItself(mirror *batchv1.Job) bool {
	if c := TrueCondition(&mirror.Status, batchv1.JobFailed); c != nil {
		return !c.LastTransitionTime.After(mirror.DeletionTimestamp.Time)
	}
	return isTrue(&mirror.Status, batchv1.JobComplete)
}

func blank(s *batchv1.JobStatus) bool {
	return s.StartTime == nil && len(s.Conditions) == 0 && s.Active == 0 && !progressed(s)
}

func progressed(s *batchv1.JobStatus) bool {
	return s.Succeeded > 0 || s.Failed > 0 || s.CompletedIndexes != "" || ptr.Deref(s.FailedIndexes, "") != ""
}

// reflection is one run of Reflect. next starts as a copy of the hub's status.
type reflection struct {
	hub, mirror   *batchv1.Job
	now           time.Time // whole seconds, as the API keeps them
	was, reported indexSets // of the hub, of the mirror
	next          batchv1.JobStatus
	held          *Deferred
}

func newReflection(hub, mirror *batchv1.Job, now time.Time) *reflection {
	r := &reflection{
		hub: hub, mirror: mirror,
		now:  now.Truncate(time.Second),
		next: *hub.Status.DeepCopy(),
	}
	r.was = readIndexes(&hub.Status, intervals.NoLimit)
	r.reported = readIndexes(&mirror.Status, r.indexLimit())
	return r
}

// conclude checks the next status, and compares it with the hub's.
func (r *reflection) conclude() Verdict {
	if v, broken := firstBroken(nextRules, r); broken {
		return v
	}
	change, differs := classify(&r.hub.Status, &r.next)
	switch {
	case differs:
		return Next{Status: r.next, Change: change}
	case r.held != nil:
		return *r.held
	default:
		return Unchanged{}
	}
}

func classify(old, next *batchv1.JobStatus) (change Change, differs bool) {
	switch {
	case !equality.Semantic.DeepEqual(old.Conditions, next.Conditions),
		!old.StartTime.Equal(next.StartTime),
		!old.CompletionTime.Equal(next.CompletionTime):
		return Transition, true
	default:
		return Progress, !equality.Semantic.DeepEqual(*old, *next)
	}
}

func deref[T any](p *T) T {
	var zero T
	return ptr.Deref(p, zero)
}
