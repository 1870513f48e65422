package plan

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Ownership sorts Pods into those a Job owns, should adopt, and should release.
type Ownership struct {
	Owned []*corev1.Pod
	// Adopt are Pods without a controller that match the selector, and untracked Pods of the Job
	// that still run: a DELETE should have followed the removal of their finalizer, but never came.
	// Both need the Job's owner reference and finalizer, and must not have changed since.
	Adopt []*corev1.Pod
	// Release are Pods of the Job that have stopped matching its selector.
	Release []*corev1.Pod
}

// isKept reports whether the Pod stays with its controller, whatever the selector: its labels
// aren't known.
func isKept(p *corev1.Pod) bool {
	return labelsLeftOut(p.Labels) && metav1.GetControllerOfNoCopy(p) != nil
}

// OwnershipOf sorts the Pods of the Job and those without a controller. A Job that is being deleted
// neither adopts nor releases Pods.
func OwnershipOf(job *batchv1.Job, selector Selector, pods []*corev1.Pod, pending Pending, finalizer string) (o Ownership) {
	deleting := job.DeletionTimestamp != nil
	for _, p := range classify(pods, pending, finalizer) {
		controller := metav1.GetControllerOfNoCopy(p.Pod)
		matches := selector.Matches(p.Labels) || isKept(p.Pod)
		switch {
		case controller == nil && matches && !deleting && !p.deleted:
			o.Adopt = append(o.Adopt, p.Pod)
		case controller == nil || controller.UID != job.UID:
			// another controller's, or no match
		case matches && p.active() && !p.tracked && !deleting && !pending.Refused.Has(p.UID):
			o.Adopt = append(o.Adopt, p.Pod)
		case matches:
			o.Owned = append(o.Owned, p.Pod)
		case !deleting:
			o.Release = append(o.Release, p.Pod)
		}
	}
	return o
}
