package capacity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/util/objectnames"
)

// Report is what is known of the Pods of one Job.
type Report struct {
	// Unschedulable counts the Pods that the scheduler found no node for.
	Unschedulable int
	// Unbound counts the other Pods that have no node, and UnboundWhy says of one of them who keeps it
	// from one: a scheduling gate, or a scheduler that says nothing.
	Unbound    int
	UnboundWhy string
	// Bound counts the Pods that have a node and haven't ended.
	Bound int
	// Running counts those of Bound of which a container ran, and Unready those whose node isn't
	// ready.
	Running, Unready int
	// Since is when the scheduler first failed for one of the unschedulable Pods, by the worker's
	// clock; zero without any.
	Since time.Time
	// Message of the scheduler about the Pod that it failed for first.
	Message string
	// NotStarting counts the Pods whose node can't start their containers: an image that can't be
	// pulled, a ConfigMap that isn't there.
	NotStarting int
	// StartError is what the kubelet says of one of them, with the container.
	StartError string
	// Preparing is a Pod that its node is still preparing: sandbox, network, volumes; empty: there is
	// none. What is in the way, if anything, is in the worker's events only.
	Preparing types.UID
	// EverRan: a container of any Pod of the Job ever ran, as far as the Ledger saw.
	EverRan bool
}

// Unschedulable reports on the Pods of a mirror.
func (l *Ledger) Unschedulable(job objectnames.ID) Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	g, ok := l.groups[job]
	if !ok {
		return Report{}
	}
	report := Report{EverRan: g.ran}
	var failures []*pod
	for _, p := range g.pods {
		if p.node != nil {
			report.addBound(p)
		}
		if p.unschedulable != nil {
			failures = append(failures, p)
		}
		if p.unbound != "" {
			report.Unbound++
			report.UnboundWhy = max(report.UnboundWhy, p.unbound) // one, and the same each time
		}
		if p.preparing {
			report.Preparing = max(report.Preparing, p.uid)
		}
		if p.startError != "" {
			report.NotStarting++
			report.StartError = max(report.StartError, p.startError) // one, and the same each time
		}
	}
	if len(failures) == 0 {
		return report
	}
	first := slices.MinFunc(failures, func(a, b *pod) int {
		return cmp.Or(a.unschedulable.since.Compare(b.unschedulable.since), cmp.Compare(a.uid, b.uid))
	})
	report.Unschedulable = len(failures)
	report.Since, report.Message = first.unschedulable.since, first.unschedulable.message
	return report
}

func (r *Report) addBound(p *pod) {
	r.Bound++
	if p.ran {
		r.Running++
	}
	if !p.node.isReady() {
		r.Unready++
	}
}

// report records what Unschedulable reports of a Pod. It changes no capacity.
func (l *Ledger) report(p *pod, object *corev1.Pod) {
	if p.group == nil {
		return
	}
	p.ran = everRan(object)
	p.group.ran = p.group.ran || p.ran
	p.unschedulable, p.startError, p.unbound = nil, "", ""
	p.preparing = isBeingPrepared(object) && !p.leaving
	if s := failingContainer(object); s != nil && p.node != nil && !p.leaving {
		p.startError = fmt.Sprintf("container %s: %s: %s", s.Name, s.State.Waiting.Reason, s.State.Waiting.Message)
	}
	if !p.live || p.node != nil {
		return
	}
	p.unbound = whyUnbound(object)
	if p.waiting == nil {
		return
	}
	for _, condition := range object.Status.Conditions {
		if condition.Type != corev1.PodScheduled || condition.Status != corev1.ConditionFalse ||
			condition.Reason != corev1.PodReasonUnschedulable {
			continue
		}
		since := condition.LastTransitionTime.Time
		if since.IsZero() {
			since = object.CreationTimestamp.Time
		}
		p.unschedulable, p.unbound = &unschedulable{since: since, message: condition.Message}, ""
	}
}

// whyUnbound says who keeps a Pod from a node: its scheduler doesn't look at it while it's gated.
func whyUnbound(object *corev1.Pod) string {
	if gates := object.Spec.SchedulingGates; len(gates) > 0 {
		names := make([]string, 0, len(gates))
		for _, gate := range gates {
			names = append(names, gate.Name)
		}
		return "gated by " + strings.Join(names, ", ")
	}
	says := "says nothing"
	for _, condition := range object.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Message != "" {
			says = "says: " + condition.Message
		}
	}
	return "scheduler " + cmp.Or(object.Spec.SchedulerName, corev1.DefaultSchedulerName) + " " + says
}

// isBeingPrepared reports whether a node has got the Pod, and nothing of it can be started yet.
func isBeingPrepared(object *corev1.Pod) bool {
	return object.Spec.NodeName != "" && !everRan(object) && slices.ContainsFunc(object.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReadyToStartContainers && c.Status == corev1.ConditionFalse
	})
}

// everRan reports whether a container of the Pod ran, init containers included: they may have done
// something that shouldn't be done twice. A kubelet that lost track of a container says that it
// terminated, and so do we.
func everRan(object *corev1.Pod) bool {
	if object.Status.Phase == corev1.PodRunning || object.Status.Phase == corev1.PodSucceeded {
		return true
	}
	return slices.ContainsFunc(object.Status.InitContainerStatuses, containerRan) ||
		slices.ContainsFunc(object.Status.ContainerStatuses, containerRan)
}

// failingContainer is the first container of a Pod that waits for something else than its turn;
// nil: there's none, or the Pod ran.
func failingContainer(object *corev1.Pod) *corev1.ContainerStatus {
	if everRan(object) {
		return nil
	}
	for _, statuses := range [][]corev1.ContainerStatus{object.Status.InitContainerStatuses, object.Status.ContainerStatuses} {
		for i := range statuses {
			if w := statuses[i].State.Waiting; w != nil && !slices.Contains(usualWaits, w.Reason) {
				return &statuses[i]
			}
		}
	}
	return nil
}

// usualWaits are the kubelet's reasons for a container that is on its way.
var usualWaits = []string{"", "ContainerCreating", "PodInitializing"}

func containerRan(s corev1.ContainerStatus) bool {
	return s.State.Running != nil || s.State.Terminated != nil || s.LastTerminationState.Terminated != nil ||
		s.RestartCount > 0 || s.Started != nil && *s.Started
}
