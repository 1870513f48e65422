package checker

import (
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// patience is for how long a Job may make no progress without a word about it.
const patience = 90 * time.Second

// giveReasons are the events that say why a Job makes no progress. They are told once for as long
// as they hold. The others say what was done about a Job, and nothing of what comes after.
var giveReasons = []string{
	v1alpha1.EventConflict, v1alpha1.EventDeferred, v1alpha1.EventDrift, v1alpha1.EventFailedCarry, v1alpha1.EventForbidden,
	v1alpha1.EventInvalid, v1alpha1.EventLost, v1alpha1.EventMirrorRefused, v1alpha1.EventMoving, v1alpha1.EventNotDispatched,
	v1alpha1.EventNotReleased, v1alpha1.EventOutOfTouch, v1alpha1.EventPending, v1alpha1.EventPodsWaiting,
	v1alpha1.EventStatusRejected, v1alpha1.EventSuspended,
}

// silence is what was seen and heard of a Job.
type silence struct {
	// progress is when the Job made some last: its placement changed, it got a mirror, a Pod of it
	// began to run, ran, or ended, or its counters grew.
	progress time.Duration
	// word is when something was said of it last: an event, another change of its status, or its
	// user's own act.
	word time.Duration
	// reported: the silence is a violation already.
	reported bool
}

func (s *silence) progresses(at time.Duration) { s.progress, s.reported = at, false }

func (s *silence) hears(at time.Duration) { s.word, s.reported = at, false }

// reason is why a hub Job makes no progress, as an event said last.
type reason struct {
	kind string
	at   time.Duration
}

// isExplained reports whether a reason was given since the last progress. What two watches deliver
// may have happened in the other order.
func (r *record) isExplained() bool {
	why, is := r.reasons[r.hub.UID]
	return is && why.at >= r.silence.progress-settling
}

// observeSaid takes in an event about a hub Job, which may itself be seen later.
func (c *Checker) observeSaid(r *record, e Event) {
	if e.Gone {
		return
	}
	of := e.Said.InvolvedObject.UID
	r.note(e.At, e.Where, "event "+e.Said.Reason+": "+e.Said.Message)
	if slices.Contains(giveReasons, e.Said.Reason) || isForsaken(e.Said) {
		r.reasons[of] = reason{e.Said.Reason, e.At}
	}
	if isForsaken(e.Said) && c.mayVanish(r) {
		r.forsaken = of
	}
	if r.hub != nil && r.hub.UID == of {
		r.silence.hears(e.At)
	}
}

// listen compares a hub Job with what it was.
func (r *record) listen(e Event) {
	if r.hub == nil || r.hub.UID != e.Job.UID {
		r.silence = silence{progress: e.At}
		return
	}
	before, after := &r.hub.Status, &e.Job.Status
	counters := func(s *batchv1.JobStatus) [6]int32 {
		return [6]int32{s.Succeeded, s.Failed, s.Active, ptr.Deref(s.Ready, 0), ptr.Deref(s.Terminating, 0), int32(len(s.CompletedIndexes))}
	}
	switch {
	case counters(before) != counters(after):
		r.silence.progresses(e.At)
	case !equality.Semantic.DeepEqual(withoutState(before), withoutState(after)) || r.hub.Generation != e.Job.Generation:
		r.silence.hears(e.At)
	}
}

// withoutState is a status without what the manager keeps for itself. Where the Job is placed, or
// why it isn't, it says to users.
func withoutState(s *batchv1.JobStatus) *batchv1.JobStatus {
	other := *s
	other.Conditions = slices.DeleteFunc(slices.Clone(s.Conditions), func(c batchv1.JobCondition) bool { return c.Type == hubstate.State })
	return &other
}

// Listen looks for Jobs that make no progress without a word, and for Pods that are shown wrongly.
// It's called every few seconds.
func (c *Checker) Listen(at time.Duration) {
	for _, name := range slices.Sorted(maps.Keys(c.records)) {
		c.listenTo(at, c.records[name])
		c.checkShown(at, c.records[name])
	}
}

func (c *Checker) listenTo(at time.Duration, r *record) {
	s := &r.silence
	if r.awaitsNothing() || r.isRunning() {
		s.progresses(at)
		return
	}
	if isAboutTouch(r.reasons[r.hub.UID].kind) && !c.isAway(r, at) {
		delete(r.reasons, r.hub.UID) // it holds no more
		s.hears(at)
	}
	if since := max(s.progress, s.word); !s.reported && !r.isExplained() && at-since > patience {
		c.violate(at, Silent, r, "no progress for %.0f s, and no word about it for %.0f s; on the hub: %s",
			(at - s.progress).Seconds(), (at - since).Seconds(), r.whereabouts())
		s.reported = true
	}
}

// awaitsNothing: nobody but the Job's user could do anything about it.
func (r *record) awaitsNothing() bool {
	if r.hub == nil || r.ended != nil {
		return true
	}
	return ptr.Deref(r.hub.Spec.Suspend, false) && r.hub.DeletionTimestamp == nil && !r.hasPods()
}

// isRunning: a Pod of the Job runs where the Job is placed, and the Job is to run.
func (r *record) isRunning() bool {
	if r.hub.DeletionTimestamp != nil || ptr.Deref(r.hub.Spec.Suspend, false) {
		return false
	}
	for _, p := range r.pods {
		if _, home := r.homes[p.where]; home && p.running && p.ready && !p.stopping && r.mirrors[p.owner] == r.hub.UID {
			return true
		}
	}
	return false
}

// hasPods: Pods of the Job are there that haven't ended.
func (r *record) hasPods() bool {
	for _, p := range r.pods {
		if !p.gone && !p.over && r.mirrors[p.owner] == r.hub.UID {
			return true
		}
	}
	return false
}

func isReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// isAboutTouch: an event says that the hub waits for a worker that is out of touch.
func isAboutTouch(kind string) bool {
	return kind == v1alpha1.EventOutOfTouch || kind == v1alpha1.EventLost
}

// isAway: a worker that the Job is placed on is out of touch, or was a moment ago.
func (c *Checker) isAway(r *record, at time.Duration) bool {
	for worker := range r.homes {
		if c.find(worker, at, at, cutsOff) != "" {
			return true
		}
	}
	return false
}
