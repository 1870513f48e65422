package job

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	"github.com/jobferry/jobferry/pkg/manager/dispatch"
)

// maxNote is the API's limit on the note of an event, in bytes.
const maxNote = 1024

const (
	// freeWarnings about a Job are told as they come.
	freeWarnings = 10
	// warningInterval is the time after which one more may be told: a worker that says something
	// else each time must not fill the hub with events.
	warningInterval = 30 * time.Second
)

// reporter tells what happens to Jobs: as events on the hub Job, in the log, and as metrics. It
// tells the same thing once, however often it's decided.
type reporter struct {
	recorder events.EventRecorder
	clock    clock.PassiveClock

	mu   sync.Mutex
	jobs map[types.UID]*account
}

// account is what was told about a Job.
type account struct {
	told map[string]telling // by reason
	// warnings in a row, and when the last one was told.
	warnings int
	warned   time.Time
}

// telling is the last text of one reason. One that isn't shown waits for its turn.
type telling struct {
	text  string
	shown bool
}

func newReporter(recorder events.EventRecorder, clock clock.PassiveClock) *reporter {
	return &reporter{recorder: recorder, clock: clock, jobs: map[types.UID]*account{}}
}

// Tell tells about a Job.
func (r *reporter) Tell(log logr.Logger, job *batchv1.Job, reports ...dispatch.Report) {
	for _, report := range reports {
		if job == nil {
			continue
		}
		isNew, show := r.note(job.UID, report)
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
		r.recorder.Eventf(job, nil, kind, report.Reason, "Dispatch", "%s", clip(report.Message))
	}
}

// note says whether a report is new, and whether to show it now.
func (r *reporter) note(uid types.UID, report dispatch.Report) (isNew, show bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.jobs[uid]
	if a == nil {
		a = &account{told: map[string]telling{}}
		r.jobs[uid] = a
	}
	last, known := a.told[report.Reason]
	isNew = !known || last.text != report.Message
	if !isNew && last.shown {
		return false, false
	}
	show = !report.Warning || a.affords(r.clock.Now())
	a.told[report.Reason] = telling{report.Message, show}
	return isNew, show
}

// affords says whether one more warning may be told now, and counts it.
func (a *account) affords(now time.Time) bool {
	back := int(min(now.Sub(a.warned)/warningInterval, freeWarnings))
	left := max(a.warnings-back, 0)
	if left >= freeWarnings {
		return false
	}
	a.warnings, a.warned = left+1, now
	return true
}

// Settle is called when nothing is left to do for a Job for now, with what was reported of its
// state: other states have passed, and will be news again.
func (r *reporter) Settle(uid types.UID, standing []dispatch.Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.jobs[uid]
	if a == nil {
		return
	}
	for reason := range a.told {
		stands := slices.ContainsFunc(standing, func(s dispatch.Report) bool { return s.Reason == reason })
		if !stands {
			delete(a.told, reason)
		}
	}
	if len(a.told) == 0 && a.warnings == 0 {
		delete(r.jobs, uid)
	}
}

// Forget drops a Job.
func (r *reporter) Forget(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.jobs, uid)
}

func clip(message string) string {
	const ellipsis = "..."
	if len(message) <= maxNote {
		return message
	}
	return strings.ToValidUTF8(message[:maxNote-len(ellipsis)], "") + ellipsis
}
