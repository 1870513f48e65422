package checker

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/e2e/chaos/schedule"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// observeSwept takes in that a mirror is being deleted, or gone: perhaps by a janitor. "If somebody
// deletes the mirror, the manager creates it again, with the progress that the hub knows", says
// docs/reference/jobs.md. What the hub doesn't know then is done again.
func (c *Checker) observeSwept(r *record, e Event) {
	_, known := r.swept[e.Job.UID]
	if known || r.hub == nil || !e.Gone && e.Job.DeletionTimestamp == nil || !c.isAt(schedule.DeleteMirrors, e.Where, e.At) {
		return
	}
	r.swept[e.Job.UID] = sweeping{e.At, r.hub.Status, c.isRestoringHub(e.At)}
}

// sweeping is when a janitor deleted a mirror, and what the hub knew of the Job then. restoring:
// the hub's etcd was being put back: it may come back with less.
type sweeping struct {
	at        time.Duration
	knew      batchv1.JobStatus
	restoring bool
}

// knewOf is what the hub knows of the Job after a sweeping.
func (r *record) knewOf(s sweeping) batchv1.JobStatus {
	if s.restoring && r.rewound {
		return batchv1.JobStatus{} // perhaps: nobody has seen what the backup had
	}
	return s.knew
}

// isAt reports whether there is a fault of a kind in a worker, or was a moment ago.
func (c *Checker) isAt(kind schedule.Kind, worker string, at time.Duration) bool {
	return slices.ContainsFunc(c.trouble, func(t Trouble) bool {
		return t.Fault.Kind == kind && t.Fault.Target == worker && t.From <= at && (t.To == Forever || at <= t.To+settling)
	})
}

// excuseOfSwept says why an index may complete in another mirror after this Pod of it: its own was
// deleted by a janitor, and the hub didn't know of the Pod's end.
func (r *record) excuseOfSwept(p *pod) string {
	s, swept := r.swept[p.owner]
	if !swept || covers(r.knewOf(s).CompletedIndexes, strconv.Itoa(p.index)) {
		return ""
	}
	return fmt.Sprintf("a janitor deleted the mirror in %s before the hub knew the end of Pod %s", p.where, p.name)
}

// sweptPods is how many Pods may have succeeded in mirrors that a janitor deleted, beyond what the
// hub knew then: of them, and of other mirrors of the Job.
func (r *record) sweptPods() (pods int) {
	for owner, s := range r.swept {
		unknown := -int(r.knewOf(s).Succeeded)
		for _, p := range r.pods {
			ofJob := r.mirrors[p.owner] == r.mirrors[owner]
			if p.succeeded && (p.owner == owner || ofJob && p.doneAt < s.at) {
				unknown++
			}
		}
		pods += max(unknown, 0)
	}
	return pods
}

// isForsaken: the manager says that a Job whose user wants it to wait for its worker isn't run
// again, as its mirror vanished there.
func isForsaken(said *corev1.Event) bool {
	return said.Reason == v1alpha1.EventMirrorRecreated && strings.Contains(said.Message, "it isn't run again")
}

// mayVanish reports whether the Job waits for its worker, and a janitor or a restore may have taken
// its mirror there: "With on-cluster-lost: Wait, it isn't run again", says docs/reference/jobs.md.
func (c *Checker) mayVanish(r *record) bool {
	return r.story.Waits() && slices.ContainsFunc(c.trouble, func(t Trouble) bool {
		_, home := r.homes[t.Fault.Target]
		return home && (t.Fault.Kind == schedule.DeleteMirrors || t.Fault.Kind == schedule.RestoreWorker)
	})
}
