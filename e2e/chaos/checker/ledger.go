package checker

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/usage"
)

// Ledger compares what Pods say of their times with the accounts of their hub Jobs, in Pod-seconds.
type Ledger struct {
	Jobs            int
	Pods, Accounted float64
	// Worst is the Job whose account differs most, and by how much.
	Worst string
	By    float64
}

// ran is for how long the Pod had a node, by its own times. If it was deleted before it ended: by when
// that was seen.
func (p *pod) observeTimes(e Event) {
	start, end := scheduledAt(e.Pod), endedAt(e.Pod)
	if start.IsZero() {
		return
	}
	if p.boundAt == nil {
		p.boundAt = &e.At
	}
	switch {
	case !end.IsZero():
		p.ran, p.over = max(end.Sub(start), 0), true
	case e.Gone && !p.over:
		p.ran = e.At - *p.boundAt
		if at := e.Pod.DeletionTimestamp; at != nil {
			p.ran = min(p.ran, max(at.Sub(start), 0))
		}
	}
	p.gone = p.gone || e.Gone
}

func scheduledAt(p *corev1.Pod) time.Time {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

func endedAt(p *corev1.Pod) (end time.Time) {
	if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
		return end
	}
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Terminated != nil && c.State.Terminated.FinishedAt.After(end) {
			end = c.State.Terminated.FinishedAt.Time
		}
	}
	return end
}

// Ledgers are those of the Jobs of which all Pods are still there, and of the others: there, the end of
// a Pod that went while no manager was in touch with its worker isn't known to the hub.
func (c *Checker) Ledgers() (complete, others Ledger) {
	for name, r := range c.records {
		if r.hub == nil || r.ended == nil {
			continue
		}
		truth, said, isComplete := r.podSeconds()
		into := &others
		if isComplete {
			into = &complete
		}
		into.Jobs++
		into.Pods, into.Accounted = into.Pods+truth, into.Accounted+said
		if math.Abs(said-truth) > math.Abs(into.By) {
			into.Worst, into.By = name, said-truth
		}
	}
	return complete, others
}

// podSeconds are those of the hub Job's Pods, and what its account says.
func (r *record) podSeconds() (truth, said float64, complete bool) {
	complete = true
	for _, p := range r.pods {
		if r.mirrors[p.owner] == r.hub.UID && p.boundAt != nil {
			truth += p.ran.Seconds()
			complete = complete && !p.gone && p.over
		}
	}
	for _, u := range usage.Read(r.hub).Settled() {
		if u.Resource == corev1.ResourcePods {
			said += u.Total
		}
	}
	return truth, said, complete
}

// checkAccount holds the account of a Job against its Pods, if all of them are still there.
func (c *Checker) checkAccount(at time.Duration, r *record) {
	if r.hub == nil {
		return
	}
	if truth, said, complete := r.podSeconds(); complete && math.Abs(truth-said) > truth/1000 {
		c.violate(at, Account, r, "its Pods ran for %.3f s, its account says %.3f s: %s", truth, said, usage.Read(r.hub))
	}
}
