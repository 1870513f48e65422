package checker

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/chaos/schedule"
	"github.com/jobferry/jobferry/pkg/manager/usage"
)

// Ledger compares what Pods say of their times with the accounts of their hub Jobs, in Pod-seconds.
type Ledger struct {
	// Jobs that have ended, and how many of their accounts have no unknown time.
	Jobs, Exact int
	// Pods is for how long they ran, between Least and Most; Accounted what the accounts say, and
	// Unknown what they say may be missing.
	Pods, Least, Most, Accounted, Unknown float64
	// Differing are the Jobs whose accounts differ from their Pods, those that differ most first.
	Differing []Difference
}

// Difference is what the account of a Job says, and what its Pods do.
type Difference struct {
	Job                      string
	Pods, Accounted, Unknown float64
	// Least and Most are for how long the Pods may have run: some have said so and seemed otherwise.
	Least, Most float64
	// Gone says what became of the Pods that aren't there any more.
	Gone string
}

func (d Difference) String() string {
	text := fmt.Sprintf("%s: Pods ran for %.1f s", d.Job, d.Pods)
	if d.Least < d.Most {
		text += fmt.Sprintf(" (%.1f to %.1f s)", d.Least, d.Most)
	}
	text += fmt.Sprintf(", the account says %.1f s (%+.1f s)", d.Accounted, d.Accounted-d.Pods)
	if d.Unknown > 0 {
		text += fmt.Sprintf(" and up to %.1f s unknown", d.Unknown)
	}
	return text + d.Gone
}

// exactly is how much of what the Pods ran an account may differ.
const exactly = 1. / 1000

// goneSlack is by how much the time of a Pod that is gone may differ besides: its own times are in
// whole seconds, and where the hub has only seen it run, it knows the worker's clock as exactly.
const goneSlack = 2.

// observeTimes takes in for how long the Pod had a node, by its own times. One that is deleted
// before its end is told ran until then. Where an answer of an API server is lost, its clients may
// write such a time twice. And where a clock was set, what a Pod says isn't what was seen: for one
// that is gone, both are right.
func (p *pod) observeTimes(e Event) {
	start, end := startedAt(e.Pod), endedAt(e.Pod)
	if start.IsZero() {
		return
	}
	if p.boundAt == nil {
		p.boundAt, p.start = &e.At, start
	}
	seen, told := e.At-*p.boundAt, max(end.Sub(p.start), 0)
	switch {
	case !end.IsZero() && !p.over:
		p.over, p.ran, p.least, p.most, p.watched = true, told, told, told, seen
		p.include(max(end.Sub(start), 0))
	case !end.IsZero():
		p.include(told)
		p.include(max(end.Sub(start), 0))
	case e.Gone && !p.over:
		p.ran, p.least, p.most, p.watched = seen, seen, seen, seen
	}
	if e.Gone && p.goneAt == nil {
		p.goneAt = &e.At
		p.include(p.watched)
	}
}

// include says that the Pod may have run for so long.
func (p *pod) include(ran time.Duration) { p.least, p.most = min(p.least, ran), max(p.most, ran) }

// startedAt is when the Pod got its node; zero: it has none. A scheduler that lost its API server
// may deny later that it has given it one.
func startedAt(p *corev1.Pod) time.Time {
	if p.Spec.NodeName == "" {
		return time.Time{}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	if p.Status.StartTime != nil {
		return p.Status.StartTime.Time
	}
	return p.CreationTimestamp.Time
}

// endedAt is when the last container ended. Of a Pod whose containers never ran, it's when its last
// condition changed.
func endedAt(p *corev1.Pod) (end time.Time) {
	if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
		return end
	}
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Terminated != nil && c.State.Terminated.FinishedAt.After(end) {
			end = c.State.Terminated.FinishedAt.Time
		}
	}
	if !end.IsZero() {
		return end
	}
	for _, c := range p.Status.Conditions {
		if c.LastTransitionTime.After(end) {
			end = c.LastTransitionTime.Time
		}
	}
	return end
}

// Ledger is that of all Jobs that have ended.
func (c *Checker) Ledger() (l Ledger) {
	for _, r := range c.records {
		if r.hub == nil || r.ended == nil {
			continue
		}
		d := c.difference(r)
		l.Jobs++
		l.Pods, l.Least, l.Most = l.Pods+d.Pods, l.Least+d.Least, l.Most+d.Most
		l.Accounted, l.Unknown = l.Accounted+d.Accounted, l.Unknown+d.Unknown
		if d.Unknown == 0 {
			l.Exact++
		}
		if d.Accounted > d.Most*(1+exactly) || d.Accounted < d.Least*(1-exactly) {
			l.Differing = append(l.Differing, d)
		}
	}
	slices.SortFunc(l.Differing, func(a, b Difference) int {
		return cmp.Compare(math.Abs(b.Accounted-b.Pods), math.Abs(a.Accounted-a.Pods))
	})
	return l
}

// difference compares the hub Job's account with its Pods.
func (c *Checker) difference(r *record) Difference {
	d := Difference{Job: r.story.Name}
	account := usage.Read(r.hub)
	for _, p := range r.boundPods() {
		least, most := p.least, p.most
		if c.isUnheardOf(p, account) {
			least = 0
		}
		if c.clockWasSet(p) { // what the Pod says may be more than the hub believes of so young a Job
			least, most = min(least, p.watched), max(most, p.watched)
		}
		d.Pods, d.Least, d.Most = d.Pods+p.ran.Seconds(), d.Least+least.Seconds(), d.Most+most.Seconds()
	}
	for _, u := range account.Settled() {
		if u.Resource == corev1.ResourcePods {
			d.Accounted, d.Unknown = d.Accounted+u.Total, d.Unknown+u.Unknown
		}
	}
	d.Gone = c.fates(r)
	return d
}

// isUnheardOf reports whether the hub never heard of a Pod's mirror: it came and went while its
// worker was out of sight. "A Pod that came and went while nobody watched doesn't count", says
// docs/reference/metrics.md.
func (c *Checker) isUnheardOf(p *pod, account usage.Account) bool {
	isIts := func(m usage.Mirror) bool { return m.UID == p.owner }
	return p.goneAt != nil && !slices.ContainsFunc(account, isIts) && len(c.blindness(p.where, p.seen, *p.goneAt)) > 0
}

// clockWasSet reports whether the clock of a Pod's worker was set while it ran.
func (c *Checker) clockWasSet(p *pod) bool {
	from, to := *p.boundAt, *p.boundAt+p.watched
	return slices.ContainsFunc(c.trouble, func(t Trouble) bool {
		during := func(at time.Duration) bool { return at >= from-settling && at <= to+settling }
		return setsClock(t.Fault.Kind) && t.Fault.Target == p.where && (during(t.From) || during(t.To))
	})
}

// boundPods are the hub Job's Pods that got a node.
func (r *record) boundPods() (pods []*pod) {
	for _, p := range r.pods {
		if r.mirrors[p.owner] == r.hub.UID && p.boundAt != nil {
			pods = append(pods, p)
		}
	}
	slices.SortFunc(pods, func(a, b *pod) int { return cmp.Or(cmp.Compare(a.seen, b.seen), cmp.Compare(a.name, b.name)) })
	return pods
}

// fates says what became of the Pods that are gone.
func (c *Checker) fates(r *record) (text string) {
	for _, p := range r.boundPods() {
		if p.goneAt == nil {
			continue
		}
		text += fmt.Sprintf("\n    %s of %s ran for %.1f s, and was gone at %s", p.name, p.where, p.ran.Seconds(), stamp(*p.goneAt))
		if !p.over {
			text += ", its end wasn't told"
		}
		for _, t := range c.blindness(p.where, *p.goneAt, *p.goneAt) {
			text += fmt.Sprintf("; out of sight: %s at %s", t.Fault, stamp(t.From))
		}
	}
	return text
}

// checkAccount holds the account of a Job against its Pods: it has no more than they, and lacks no
// more than it says. It may say that for as long as the hub was blind.
func (c *Checker) checkAccount(at time.Duration, r *record) {
	if r.hub == nil || c.revived(r) || r.rewound {
		return
	}
	d, slack := c.difference(r), 0.
	for _, p := range r.boundPods() {
		if p.goneAt != nil {
			slack += goneSlack
		}
	}
	slack += d.Pods * exactly
	if d.Accounted > d.Most+slack || d.Accounted+d.Unknown < d.Least-slack {
		c.violate(at, Account, r, "%s: %s", d, usage.Read(r.hub))
	}
	if most := c.blindSeconds(at, r); d.Unknown > most+slack {
		c.violate(at, Account, r, "%.1f s are unknown, and it was out of sight for %.1f s: %s", d.Unknown, most, usage.Read(r.hub))
	}
}

// blindSeconds are those until some time in which the hub may not have seen the Job's Pods, times
// how many there may have been in each worker. In a worker that the account names, it may have had
// to reckon with Pods that got no node.
func (c *Checker) blindSeconds(at time.Duration, r *record) float64 {
	workers := map[string]bool{}
	for _, p := range r.boundPods() {
		workers[p.where] = true
	}
	for _, m := range usage.Read(r.hub) {
		workers[m.Worker] = true
	}
	var blind time.Duration
	for worker := range workers {
		var spans []span
		for _, t := range c.blindness(worker, 0, at) {
			spans = append(spans, span{t.From, min(t.felt(), at)})
		}
		blind += union(spans)
	}
	return blind.Seconds() * float64(max(ptr.Deref(r.hub.Spec.Parallelism, 1), 1))
}

// blindness are the faults that may have kept the hub from seeing Pods of a worker between two
// times: of the worker, of the hub, or of a manager.
func (c *Checker) blindness(worker string, from, to time.Duration) (all []Trouble) {
	for _, t := range c.trouble {
		if (hits(t.Fault, worker) && cutsOff(t.Fault.Kind) || leavesNoLeader(t.Fault.Kind)) && t.From <= to && t.felt() >= from {
			all = append(all, t)
		}
	}
	return all
}

// leavesNoLeader reports whether there may be no manager that leads during a fault.
func leavesNoLeader(k schedule.Kind) bool {
	switch k {
	case schedule.KillManager, schedule.FreezeManager, schedule.KillLeader, schedule.FreezeLeader, schedule.ResetHubLink,
		schedule.BlackHoleHubLink, schedule.KillHubAPIServer, schedule.KillHubEtcd, schedule.RestoreHub:
		return true
	default:
		return false
	}
}

// span is some time.
type span struct{ from, to time.Duration }

// union is for how long there is at least one of the spans.
func union(spans []span) (length time.Duration) {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	until := time.Duration(0)
	for _, s := range spans {
		length += max(s.to-max(s.from, until), 0)
		until = max(until, s.to)
	}
	return length
}
