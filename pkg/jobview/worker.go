package jobview

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// WorkerState of a WorkerCluster in a word. docs/reference/workers.md says what each means, and
// what to do.
type WorkerState string

// The states of a worker.
const (
	// WorkerRemoving: the WorkerCluster is being deleted.
	WorkerRemoving WorkerState = "Removing"
	// WorkerUnknown: the manager hasn't tried the worker yet.
	WorkerUnknown WorkerState = "Unknown"
	// WorkerLost: it was out of touch for so long that its Jobs may continue elsewhere.
	WorkerLost     WorkerState = "Lost"
	WorkerNotReady WorkerState = "NotReady"
	// WorkerDrained: it's being drained, and has no unfinished Job any more.
	WorkerDrained  WorkerState = "Drained"
	WorkerDraining WorkerState = "Draining"
	WorkerCordoned WorkerState = "Cordoned"
	WorkerReady    WorkerState = "Ready"
)

// WorkerStates are all states of workers.
var WorkerStates = []WorkerState{
	WorkerReady, WorkerCordoned, WorkerDraining, WorkerDrained, WorkerNotReady, WorkerLost, WorkerUnknown, WorkerRemoving,
}

// workerRules are checked in order; the state of the first that applies is the worker's.
var workerRules = []struct {
	state   WorkerState
	applies func(*v1alpha1.WorkerCluster) bool
}{
	{WorkerRemoving, func(w *v1alpha1.WorkerCluster) bool { return schedulableReason(w) == v1alpha1.ReasonRemoving }},
	{WorkerUnknown, func(w *v1alpha1.WorkerCluster) bool {
		return meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionReady) == nil
	}},
	{WorkerLost, func(w *v1alpha1.WorkerCluster) bool {
		return meta.IsStatusConditionTrue(w.Status.Conditions, v1alpha1.ConditionLost)
	}},
	{WorkerNotReady, func(w *v1alpha1.WorkerCluster) bool {
		return !meta.IsStatusConditionTrue(w.Status.Conditions, v1alpha1.ConditionReady)
	}},
	{WorkerDrained, IsDrained},
	{WorkerDraining, func(w *v1alpha1.WorkerCluster) bool { return w.Spec.Drain }},
	{WorkerCordoned, func(w *v1alpha1.WorkerCluster) bool { return w.Spec.Cordoned }},
}

// limits are the reasons of the condition Schedulable for which a Ready worker doesn't take all
// Jobs, or takes them unchecked.
var limits = map[string]bool{
	v1alpha1.ReasonNamespaceSelectorInvalid: true, v1alpha1.ReasonTooManyMirrors: true, v1alpha1.ReasonHeldElsewhere: true,
	v1alpha1.ReasonCapacityUnknown: true, v1alpha1.ReasonPartlyChecked: true,
}

// WorkerStateOf returns the state of a worker, and the reason of one that is Lost, NotReady, or
// Ready with limits.
func WorkerStateOf(w *v1alpha1.WorkerCluster) (state WorkerState, reason string) {
	state = WorkerReady
	for _, r := range workerRules {
		if r.applies(w) {
			state = r.state
			break
		}
	}
	switch state {
	case WorkerLost, WorkerNotReady:
		return state, reasonOf(w, v1alpha1.ConditionReady)
	case WorkerReady:
		if reason := schedulableReason(w); limits[reason] {
			return state, reason
		}
	}
	return state, ""
}

// IsDrained reports whether a worker that is being drained has no unfinished Job.
func IsDrained(w *v1alpha1.WorkerCluster) bool {
	return w.Spec.Drain && w.Status.ObservedGeneration >= w.Generation && w.Status.Jobs == 0
}

func schedulableReason(w *v1alpha1.WorkerCluster) string {
	return reasonOf(w, v1alpha1.ConditionSchedulable)
}

func reasonOf(w *v1alpha1.WorkerCluster, condition string) string {
	if c := meta.FindStatusCondition(w.Status.Conditions, condition); c != nil {
		return c.Reason
	}
	return ""
}

// IsOutOfTouch reports whether the hub doesn't reach a worker.
func IsOutOfTouch(w *v1alpha1.WorkerCluster) bool {
	ready := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Status != metav1.ConditionTrue
}

// Seen is what a Job's state and reason depend on of a worker.
type Seen struct {
	// OutOfTouch: the hub doesn't reach it.
	OutOfTouch bool
	// Left: its Jobs are to leave it.
	Left bool
}

// SeenOf a worker.
func SeenOf(w *v1alpha1.WorkerCluster) Seen {
	return Seen{IsOutOfTouch(w), w.Spec.Drain || w.DeletionTimestamp != nil || schedulableReason(w) == v1alpha1.ReasonRemoving}
}

// Workers are those of a hub, by name. One that isn't there is out of touch.
type Workers func(name string) Seen

// WorkersAmong are some workers. Nil, without any: their user may not see them.
func WorkersAmong(workers []*v1alpha1.WorkerCluster) Workers {
	if len(workers) == 0 {
		return nil
	}
	seen := map[string]Seen{}
	for _, w := range workers {
		seen[w.Name] = SeenOf(w)
	}
	return func(name string) Seen {
		s, is := seen[name]
		s.OutOfTouch = s.OutOfTouch || !is
		return s
	}
}

// OutOfTouch reports whether the hub doesn't reach a worker.
func (w Workers) OutOfTouch(name string) bool { return w(name).OutOfTouch }

// Left reports whether a worker's Jobs are to leave it.
func (w Workers) Left(name string) bool { return w != nil && w(name).Left }
