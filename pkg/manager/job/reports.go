package job

import (
	"cmp"
	"slices"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/util/text"
)

const (
	// freeWarnings about a Job are reported as they come.
	freeWarnings = 10
	// warningInterval is the time after which one more may be reported: a worker that says
	// something else each time must not fill the hub with events.
	warningInterval = 30 * time.Second
	// tellAgain is the time after which a warning that still holds is reported again: API servers keep
	// events for an hour by default (--event-ttl).
	tellAgain = 50 * time.Minute
)

// reported is what was reported about a Job.
type reported struct {
	// texts are the last ones. One that isn't shown waits for its turn.
	texts map[reportKey]reportedText
	// warnings counts those in a row, and warned is when the last one was shown.
	warnings int
	warned   time.Time
}

type reportKey struct{ reason, about string }

func keyOfReport(r dispatch.Report) reportKey { return reportKey{r.Reason, r.About} }

type reportedText struct {
	text  string
	shown bool
	at    time.Time
}

// reporter makes events on the hub Job, log lines and metrics of reports: once for the same report,
// however often it's decided, for as long as the hub keeps the event.
type reporter struct {
	recorder events.EventRecorder
	clock    clock.PassiveClock
}

func (r *reporter) report(log logr.Logger, rec *record, job *batchv1.Job, reports ...dispatch.Report) {
	planned := job
	for _, report := range reports {
		if job = cmp.Or(report.On, planned); job == nil {
			continue
		}
		report.Message = text.Clean(report.Message, text.MaxMessage)
		isNew, show, plain := false, false, false
		now := r.clock.Now()
		rec.update(func(m *memory) {
			plain = hubstate.Get(job, hubstate.Shards) == "" && m.reported.saysSo(report)
			isNew, show = m.reported.add(report, now)
		})
		if isNew && report.Rule != "" {
			statusRejected.WithLabelValues(string(report.Rule)).Inc()
		}
		if !show {
			continue
		}
		kind := corev1.EventTypeNormal
		if report.Warning {
			kind = corev1.EventTypeWarning
		}
		log.Info(report.Message, "reason", report.Reason)
		if plain {
			continue
		}
		r.recorder.Eventf(job, nil, kind, report.Reason, "Dispatch", "%s", report.Message)
	}
}

// saysSo reports whether a report goes without an event: a mirror is created where the last event
// has placed the Job, and nothing noteworthy has happened between. A Job that goes the plain way
// has one event. One that was moved has another: its mirror may have to wait for the end of the
// former.
func (r *reported) saysSo(report dispatch.Report) bool {
	if report.Reason != v1alpha1.EventMirrored {
		return false
	}
	placed := false
	for key := range r.texts {
		switch key.reason {
		case v1alpha1.EventPlaced:
			placed = true
		case v1alpha1.EventPending, v1alpha1.EventMirrored:
		default:
			return false
		}
	}
	return placed
}

// add says whether a report is new, and whether to show it now.
func (r *reported) add(report dispatch.Report, now time.Time) (isNew, show bool) {
	last, known := r.texts[keyOfReport(report)]
	isNew = !known || last.text != report.Message
	if !isNew && last.shown && (!report.Warning || now.Sub(last.at) < tellAgain) {
		return false, false
	}
	show = !report.Warning || r.mayWarn(now)
	if r.texts == nil {
		r.texts = map[reportKey]reportedText{}
	}
	r.texts[keyOfReport(report)] = reportedText{report.Message, show, now}
	return isNew, show
}

// mayWarn says whether one more warning may be shown now, and counts it.
func (r *reported) mayWarn(now time.Time) bool {
	expired := int(min(now.Sub(r.warned)/warningInterval, freeWarnings))
	left := max(r.warnings-expired, 0)
	if left >= freeWarnings {
		return false
	}
	r.warnings, r.warned = left+1, now
	return true
}

// keep drops all reports but those that hold now, when nothing is left to do for a Job: if the
// others hold again, they are new.
func (r *reported) keep(current []dispatch.Report) {
	for key := range r.texts {
		if !slices.ContainsFunc(current, func(c dispatch.Report) bool { return keyOfReport(c) == key }) {
			delete(r.texts, key)
		}
	}
	if len(r.texts) == 0 {
		r.texts = nil // nearly always, and an empty map isn't small
	}
}
