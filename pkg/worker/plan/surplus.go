package plan

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// surplus are the active Pods to delete: for an Indexed Job all that have no index, one out of
// range, or one that another Pod has, too; then the most expendable, until no more than wanted are
// left. A Pod whose index has left the shard isn't surplus, unless the Job is stopped.
func (f *facts) surplus(want int) []*pod {
	surplus, rest := []*pod(nil), f.active
	if f.indexed {
		surplus, rest = f.misplaced()
	}
	if !f.stopped() {
		rest = filter(rest, func(p *pod) bool { return !f.hasLeft(p) })
	}
	if more := len(rest) - want; more > 0 {
		surplus = append(surplus, byExpendability(rest)[:more]...)
	}
	return surplus
}

// misplaced splits off the active Pods that an Indexed Job has no use for.
func (f *facts) misplaced() (misplaced, rest []*pod) {
	byIndex := map[int][]*pod{}
	for _, p := range f.active {
		if f.valid(p) {
			byIndex[p.index] = append(byIndex[p.index], p)
			continue
		}
		misplaced = append(misplaced, p)
	}
	for _, p := range f.active {
		same := byIndex[p.index]
		if len(same) == 0 {
			continue // misplaced, or already handled
		}
		delete(byIndex, p.index)
		if len(same) > 1 {
			same = byExpendability(same)
		}
		misplaced = append(misplaced, same[:len(same)-1]...)
		rest = append(rest, same[len(same)-1])
	}
	return misplaced, rest
}

// byExpendability sorts a copy, the Pods to be deleted first in front.
func byExpendability(pods []*pod) []*pod {
	got := make(map[*pod]progress, len(pods))
	for _, p := range pods {
		got[p] = progressOf(p)
	}
	sorted := slices.Clone(pods)
	slices.SortStableFunc(sorted, func(a, b *pod) int { return got[a].compare(got[b]) })
	return sorted
}

// progress is how far a Pod has got. It's read once for each Pod, which may have thousands of
// containers.
type progress struct {
	bound, ready              bool
	phase                     int
	readySince, created       time.Time
	restarts, sidecarRestarts int32
}

func progressOf(p *pod) progress {
	return progress{
		bound: p.Spec.NodeName != "", ready: p.ready(), phase: phaseRank(p),
		readySince: readySince(p), created: p.CreationTimestamp.Time,
		restarts: maxRestarts(each(p.Status.ContainerStatuses)), sidecarRestarts: maxRestarts(sidecarStatuses(p.Pod)),
	}
}

// compare prefers to delete Pods that have got less far: without a node, then by phase, not ready,
// ready for a shorter time, restarted more often (sidecars last), younger. The deletion cost
// annotation is for ReplicaSets, a Job doesn't look at it.
func (a progress) compare(b progress) int {
	return cmp.Or(
		compareBool(a.bound, b.bound),
		cmp.Compare(a.phase, b.phase),
		compareBool(a.ready, b.ready),
		compareNewestFirst(a.readySince, b.readySince),
		cmp.Compare(b.restarts, a.restarts),
		cmp.Compare(b.sidecarRestarts, a.sidecarRestarts),
		compareNewestFirst(a.created, b.created),
	)
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func phaseRank(p *pod) int {
	switch p.Status.Phase {
	case corev1.PodUnknown:
		return 1
	case corev1.PodRunning:
		return 2
	}
	return 0
}

func readySince(p *pod) time.Time {
	if c := podCondition(p.Pod, corev1.PodReady); c != nil && c.Status == corev1.ConditionTrue {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

// compareNewestFirst puts an unset time before every other.
func compareNewestFirst(a, b time.Time) int {
	if a.IsZero() || b.IsZero() {
		return compareBool(!a.IsZero(), !b.IsZero())
	}
	return b.Compare(a)
}

func maxRestarts(of statuses) int32 {
	var most int32
	for c := range of {
		most = max(most, c.RestartCount)
	}
	return most
}
