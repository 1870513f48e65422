package manager

import (
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"github.com/jobferry/jobferry/pkg/manager/dispatch"
)

// maxNote is the API's limit on the note of an event, in bytes.
const maxNote = 1024

// reporter tells what happens to Jobs: as events on the hub Job, in the log, and
// as metrics. It tells the same thing once, however often it's decided.
type reporter struct {
	recorder events.EventRecorder

	mu   sync.Mutex
	told map[types.UID]map[string]string // reason -> message
}

func newReporter(recorder events.EventRecorder) *reporter {
	return &reporter{recorder: recorder, told: map[types.UID]map[string]string{}}
}

// Tell tells about a Job.
func (r *reporter) Tell(log logr.Logger, job *batchv1.Job, reports ...dispatch.Report) {
	for _, report := range reports {
		if job == nil || !r.isNews(job.UID, report) {
			continue
		}
		kind := corev1.EventTypeNormal
		if report.Warning {
			kind = corev1.EventTypeWarning
		}
		if report.Rule != "" {
			statusRejected.WithLabelValues(string(report.Rule)).Inc()
		}
		log.Info(report.Message, "reason", report.Reason)
		r.recorder.Eventf(job, nil, kind, report.Reason, "Dispatch", "%s", clip(report.Message))
	}
}

func (r *reporter) isNews(uid types.UID, report dispatch.Report) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.told[uid][report.Reason] == report.Message {
		return false
	}
	if r.told[uid] == nil {
		r.told[uid] = map[string]string{}
	}
	r.told[uid][report.Reason] = report.Message
	return true
}

// Settle is called when nothing is left to do for a Job for now, with what was
// reported of its state: other states have passed, and will be news again.
func (r *reporter) Settle(uid types.UID, standing []dispatch.Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for reason := range r.told[uid] {
		stands := slices.ContainsFunc(standing, func(s dispatch.Report) bool { return s.Reason == reason })
		if !stands {
			delete(r.told[uid], reason)
		}
	}
}

// Forget drops a Job.
func (r *reporter) Forget(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.told, uid)
}

func clip(message string) string {
	const ellipsis = "..."
	if len(message) <= maxNote {
		return message
	}
	return strings.ToValidUTF8(message[:maxNote-len(ellipsis)], "") + ellipsis
}
