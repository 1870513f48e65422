package checker

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jobferry/jobferry/e2e/chaos/schedule"
)

// observeSwept takes in that a mirror is being deleted, or gone: perhaps by a janitor. "If somebody
// deletes the mirror, the manager creates it again, with the progress that the hub knows", says
// docs/jobs.md. What the hub doesn't know then is done again.
func (c *Checker) observeSwept(r *record, e Event) {
	_, known := r.swept[e.Job.UID]
	if known || r.hub == nil || !e.Gone && e.Job.DeletionTimestamp == nil || !c.isAt(schedule.DeleteMirrors, e.Where, e.At) {
		return
	}
	r.swept[e.Job.UID] = r.hub.Status
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
	known, swept := r.swept[p.owner]
	if !swept || covers(known.CompletedIndexes, strconv.Itoa(p.index)) {
		return ""
	}
	return fmt.Sprintf("a janitor deleted the mirror in %s before the hub knew the end of Pod %s", p.where, p.name)
}

// sweptPods is how many Pods may have succeeded in mirrors that a janitor deleted, beyond what the
// hub knew then.
func (r *record) sweptPods() (pods int) {
	for owner := range r.swept {
		for _, p := range r.pods {
			if p.owner == owner && p.succeeded {
				pods++
			}
		}
		pods -= int(r.swept[owner].Succeeded)
	}
	return pods
}
