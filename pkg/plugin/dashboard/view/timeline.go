package view

import (
	"cmp"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/show"
)

// Timeline is where a Job was when, and what it did there.
type Timeline struct {
	From, To time.Time
	// Ended: To is the end of the Job, not the present.
	Ended bool
	Lanes []Lane
	Ticks []Tick
}

// Lane is a row: the hub, where a Job waits, or one worker.
type Lane struct {
	Name  string
	Spans []Span
}

// Span is a time with one state.
type Span struct {
	// State is Waiting, Suspended, Starting, Running, Stopping or Out of touch.
	State    string
	From, To time.Time
	// Why in words; it may be empty.
	Why string
	// Left and Width are percents of the timeline.
	Left, Width float64
}

// Tick is a mark on the axis.
type Tick struct {
	Left float64
	Text string
}

// The states of spans.
const (
	spanWaiting    = "Waiting"
	spanSuspended  = "Suspended"
	spanStarting   = "Starting"
	spanRunning    = "Running"
	spanStopping   = "Stopping"
	spanOutOfTouch = "Out of touch"
)

// history is all that the timeline is made from.
type history struct {
	job    *batchv1.Job
	events []show.Entry
	pods   []corev1.Pod
}

// NewTimeline makes the timeline of a Job.
func NewTimeline(job *batchv1.Job, events []show.Entry, pods []corev1.Pod, now time.Time) Timeline {
	t := Timeline{From: job.CreationTimestamp.Time, To: now}
	if end := jobview.Of(job, jobview.Around{}).Status.EndTime; end != nil {
		t.To, t.Ended = end.Time, true
	}
	if !t.To.After(t.From) {
		t.To = t.From.Add(time.Second) // the clocks of hub and user differ
	}
	tracks := &tracks{end: t.To}
	for _, change := range (history{job, events, pods}).changes() {
		change.apply(tracks)
	}
	t.Lanes = tracks.close()
	t.scale()
	return t
}

// changes are all that moves a span, in order of time.
func (h history) changes() []change {
	first := spanWaiting
	if suspendedAtFirst(h.job, h.events) {
		first = spanSuspended
	}
	all := []change{{h.job.CreationTimestamp.Time, func(t *tracks, at time.Time) { t.enter(hubLane, first, at) }}}
	placed := false
	for i := range h.events {
		e := &h.events[i]
		_, says, ours := jobview.Read(&e.Event)
		if e.From != show.Hub || !ours {
			continue
		}
		placed = placed || says.Reason == v1alpha1.EventPlaced || says.Reason == v1alpha1.EventMirrored
		if do := eventChanges[says.Reason]; do != nil {
			all = append(all, change{says.At, do(says.Message)})
		}
	}
	if !placed {
		all = append(all, h.fromJob()...)
	}
	all = append(all, h.firstRuns()...)
	slices.SortStableFunc(all, func(a, b change) int {
		return a.at.Truncate(time.Second).Compare(b.at.Truncate(time.Second))
	})
	if further := len(all) - maxChanges; further > 0 {
		all = slices.Delete(all, 1, 1+further) // the first one is the Job's creation
	}
	return all
}

// maxChanges bounds what a timeline is made of; the newest are drawn.
const maxChanges = 1000

// suspendedAtFirst reports whether the Job was created suspended: it was never resumed before it
// was placed.
func suspendedAtFirst(job *batchv1.Job, events []show.Entry) bool {
	for i := range events {
		if e := &events[i].Event; events[i].From == show.Hub && e.Reason == v1alpha1.EventSuspended {
			return e.FirstTimestamp.Sub(job.CreationTimestamp.Time) < 2*time.Second
		}
	}
	return mirror.Suspended(job) && len(shards.WorkersOf(job)) == 0
}

// fromJob stands in for events that are gone.
func (h history) fromJob() (all []change) {
	at := h.job.CreationTimestamp.Time
	if h.job.Status.StartTime != nil {
		at = h.job.Status.StartTime.Time
	}
	workers := shards.WorkersOf(h.job)
	from := hubstate.Get(h.job, hubstate.MovedFrom)
	if movedAt, moved := h.movedAt(); from != "" && moved {
		all = append(all, change{at, placeOn(from)}, change{at, run(from)}, change{movedAt, leave(from)})
		at = movedAt
	}
	for _, worker := range workers {
		all = append(all, change{at, placeOn(worker)})
	}
	return all
}

// movedAt is when the Job moved last.
func (h history) movedAt() (at time.Time, moved bool) {
	at, err := time.Parse(time.RFC3339, hubstate.Get(h.job, hubstate.MovedAt))
	return at, err == nil
}

// firstRuns are the starts of the first Pod in each worker. Of a worker that is lost they can't be
// read, but the Job itself knows when it started in its first one.
func (h history) firstRuns() (all []change) {
	first := map[string]time.Time{}
	note := func(worker string, at time.Time) {
		if before, seen := first[worker]; worker != "" && !at.IsZero() && (!seen || at.Before(before)) {
			first[worker] = at
		}
	}
	for i := range h.pods {
		if started := h.pods[i].Status.StartTime; started != nil {
			note(access.WorkerOf(&h.pods[i]), started.Time)
		}
	}
	for i := range h.events {
		if e := &h.events[i]; e.From != show.Hub && (e.Event.Reason == "SuccessfulCreate" || e.Event.Reason == "Started") {
			note(e.From, cmp.Or(e.Event.FirstTimestamp.Time, jobview.Time(&e.Event)))
		}
	}
	if h.job.Status.StartTime != nil {
		h.guessRuns(first, note)
	}
	for worker, at := range first {
		all = append(all, change{at, run(worker)})
	}
	slices.SortFunc(all, func(a, b change) int { return a.at.Compare(b.at) })
	return all
}

// guessRuns notes what the Job itself knows of when it ran, where nothing else does.
func (h history) guessRuns(known map[string]time.Time, note func(worker string, at time.Time)) {
	started := h.job.Status.StartTime.Time
	if len(known) == 0 && (ptr.Deref(h.job.Status.Ready, 0) > 0 || mirror.Finished(h.job)) {
		movedAt, _ := h.movedAt()
		for _, worker := range shards.WorkersOf(h.job) {
			note(worker, slices.MaxFunc([]time.Time{started, movedAt}, time.Time.Compare))
		}
	}
	if _, seen := known[h.firstWorker()]; !seen {
		note(h.firstWorker(), started)
	}
}

// firstWorker is where the Job was placed first; empty: it isn't known.
func (h history) firstWorker() string {
	for i := range h.events {
		_, says, ours := jobview.Read(&h.events[i].Event)
		if !ours || says.Reason != v1alpha1.EventPlaced && says.Reason != v1alpha1.EventMirrored {
			continue
		}
		if workers := workersIn(says.Message); len(workers) > 0 {
			return workers[0]
		}
	}
	return hubstate.Get(h.job, hubstate.MovedFrom)
}

// minWidth keeps a short span visible, in percent.
const minWidth = 0.4

// scale computes the percents.
func (t *Timeline) scale() {
	whole := float64(t.To.Sub(t.From))
	for i := range t.Lanes {
		for j := range t.Lanes[i].Spans {
			s := &t.Lanes[i].Spans[j]
			s.Left = min(max(100*float64(s.From.Sub(t.From))/whole, 0), 100-minWidth)
			s.Width = min(max(100*float64(s.To.Sub(s.From))/whole, minWidth), 100-s.Left)
		}
	}
	t.Ticks = ticks(t.To.Sub(t.From))
}
