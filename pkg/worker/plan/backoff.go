package plan

import (
	"iter"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
)

// Backoff holds the latest failures of a Job without backoffLimitPerIndex. It delays the next Pod:
// PodFailureBackoff after the first failure, doubled with each further one, up to
// MaxPodFailureBackoff; a success resets it.
type Backoff struct {
	Failures int       // since the last success
	Last     time.Time // when the latest of them ended
}

// after is the record once the newly ended Pods are taken into account. Of Pods that are seen to
// end together, only failures after the last success count.
func (b Backoff) after(succeeded, failed []*pod) Backoff {
	var lastSuccess time.Time
	if len(succeeded) > 0 {
		b = Backoff{}
		lastSuccess = latestEnd(succeeded)
	}
	counted := filter(failed, func(p *pod) bool {
		return len(succeeded) == 0 || endTime(p.Pod).After(lastSuccess)
	})
	if len(counted) == 0 {
		return b
	}
	return Backoff{Failures: b.Failures + len(counted), Last: latestEnd(counted)}
}

// remembered derives the record of a controller that has just been started from the Pods it had
// counted before.
func (f *facts) remembered() Backoff {
	counted := filter(f.pods, func(p *pod) bool { return p.ended() && !p.deleted && f.valid(p) && !f.isNew(p) })
	return Backoff{}.after(
		filter(counted, (*pod).succeeded),
		filter(counted, func(p *pod) bool { return !p.succeeded() }),
	)
}

// remaining is how long the next Pod has to wait, 0 if it doesn't.
func (b Backoff) remaining(now time.Time, o Options) time.Duration {
	if b.Failures == 0 {
		return 0
	}
	return max(0, backoffDelay(b.Failures, o)-now.Sub(b.Last))
}

func backoffDelay(failures int, o Options) time.Duration {
	delay := o.PodFailureBackoff
	for range failures - 1 {
		if delay *= 2; delay >= o.MaxPodFailureBackoff {
			return o.MaxPodFailureBackoff
		}
	}
	return delay
}

func latestEnd(pods []*pod) (latest time.Time) {
	for _, p := range pods {
		if at := endTime(p.Pod); at.After(latest) {
			latest = at
		}
	}
	return latest
}

// endTime is when the Pod ended. The sources are in order of trust: its containers; the moment it
// stopped being ready, which the kubelet writes; the start of its deletion, for a Pod without a
// reported end; its creation.
func endTime(p *corev1.Pod) time.Time {
	if at, ok := containersEnd(p); ok {
		return at
	}
	if c := podCondition(p, corev1.PodReady); c != nil && c.Status == corev1.ConditionFalse && !c.LastTransitionTime.IsZero() {
		return c.LastTransitionTime.Time
	}
	if p.DeletionTimestamp != nil {
		return p.DeletionTimestamp.Add(-time.Duration(ptr.Deref(p.DeletionGracePeriodSeconds, 0)) * time.Second)
	}
	return p.CreationTimestamp.Time
}

// containersEnd is the end of the last container or sidecar, if all have ended.
func containersEnd(p *corev1.Pod) (time.Time, bool) {
	var last time.Time
	for _, list := range []statuses{each(p.Status.ContainerStatuses), sidecarStatuses(p)} {
		for c := range list {
			if c.State.Terminated == nil || c.State.Terminated.FinishedAt.IsZero() {
				return time.Time{}, false
			}
			if at := c.State.Terminated.FinishedAt.Time; at.After(last) {
				last = at
			}
		}
	}
	return last, !last.IsZero()
}

// statuses are those of containers: to copy them takes longer than to read them.
type statuses = iter.Seq[*corev1.ContainerStatus]

func each(list []corev1.ContainerStatus) statuses {
	return func(yield func(*corev1.ContainerStatus) bool) {
		for i := range list {
			if !yield(&list[i]) {
				return
			}
		}
	}
}

// IsSidecar reports whether an init container keeps running.
func IsSidecar(c *corev1.Container) bool {
	return ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
}

// sidecarStatuses are the states of the init containers that keep running.
func sidecarStatuses(p *corev1.Pod) statuses {
	sidecars := sets.Set[string]{}
	for i := range p.Spec.InitContainers {
		if c := &p.Spec.InitContainers[i]; IsSidecar(c) {
			sidecars.Insert(c.Name)
		}
	}
	return func(yield func(*corev1.ContainerStatus) bool) {
		for status := range each(p.Status.InitContainerStatuses) {
			if sidecars.Has(status.Name) && !yield(status) {
				return
			}
		}
	}
}
