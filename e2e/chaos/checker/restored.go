package checker

import (
	"fmt"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/e2e/chaos/schedule"
)

// noticing is how long it may take until the manager has noticed that a worker's etcd was put back,
// read everything there again, and suspended what knows too little. "What their Pods do between the
// restore and the suspension is done twice", says docs/how-to/operate.md.
const noticing = 20 * time.Second

// restoring is the restore of a cluster's etcd during which, or just after which, something was
// seen there; nil: there is none.
func (c *Checker) restoring(cluster string, at time.Duration) *Trouble {
	for i, t := range c.trouble {
		isRestore := t.Fault.Kind == schedule.RestoreWorker || t.Fault.Kind == schedule.RestoreHub
		if isRestore && t.Fault.Target == cluster && t.From <= at && (t.To == Forever || at <= t.To+noticing) {
			return &c.trouble[i]
		}
	}
	return nil
}

// isRestoringHub reports whether the hub's etcd is being put back, or was a moment ago. Watches
// show what has become of each Job then: "Back up and restore the hub" in docs/how-to/operate.md.
func (c *Checker) isRestoringHub(at time.Duration) bool {
	return c.restoring(schedule.Hub, at) != nil
}

// isOlder reports whether a Job is as it was before another time that it was seen.
func isOlder(is, was *batchv1.Job) bool {
	a, b := versionOf(is), versionOf(was)
	return is.UID != was.UID || a < b
}

func versionOf(j *batchv1.Job) int64 {
	version, _ := strconv.ParseInt(j.ResourceVersion, 10, 64) // they are numbers: KEP-5504
	return version
}

// forgets reports whether the hub may not know any more what Pods of the Job did: it came back with
// the backup, or was divided otherwise then. "Back up and restore the hub" in
// docs/how-to/operate.md.
func (r *record) forgets() bool { return r.returned || r.rewound && r.story.Divided() }

// excuseOfRestored says why a Pod may run again what was done: it was made just after its worker's
// etcd had been put back, or what was done there before had been undone by that, and the hub
// didn't know of it.
func (c *Checker) excuseOfRestored(r *record, first, second *pod) string {
	if r.forgets() {
		return "the hub's backup didn't know of it"
	}
	if t := c.restoring(second.where, second.seen); t != nil && t.To != Forever && second.seen >= t.To-settling {
		return fmt.Sprintf("excused by %s at %s", t.Fault, stamp(t.To))
	}
	if t := c.restoring(first.where, first.doneAt); t != nil && !r.knownComplete(first) {
		return fmt.Sprintf("undone by %s at %s", t.Fault, stamp(t.To))
	}
	return ""
}

// revived: Pods of the Job were put back with their worker's etcd, so that what they say of their
// times is of two lives.
func (c *Checker) revived(r *record) bool {
	for _, t := range c.trouble {
		for _, p := range r.pods {
			if t.Fault.Kind == schedule.RestoreWorker && t.Fault.Target == p.where && p.seen <= t.felt() && (p.goneAt == nil || *p.goneAt >= t.From) {
				return true
			}
		}
	}
	return false
}
