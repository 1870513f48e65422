package plan

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Claims are the Pods a Job has, should get, and should let go.
type Claims struct {
	Owned []*corev1.Pod
	// Adopt are Pods that match the selector and that nobody controls, and those of the Job that
	// run without the tracking finalizer: their release was meant to be followed by a DELETE that
	// never came. Both need the Job's owner reference and finalizer, and must not have changed
	// since.
	Adopt []*corev1.Pod
	// Release are Pods of the Job that have stopped matching its selector.
	Release []*corev1.Pod
}

// Claim sorts the Pods that the Job controls or that nobody does. While the Job is being deleted it
// keeps what it has and takes no more.
func Claim(job *batchv1.Job, pods []*corev1.Pod, pending Pending, finalizer string) (Claims, error) {
	selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
	if err != nil {
		return Claims{}, err
	}
	var c Claims
	leaving := job.DeletionTimestamp != nil
	for _, p := range classify(pods, pending, finalizer) {
		controller := metav1.GetControllerOfNoCopy(p.Pod)
		matches := selector.Matches(labels.Set(p.Labels))
		switch {
		case controller == nil && matches && !leaving && !p.deleted:
			c.Adopt = append(c.Adopt, p.Pod)
		case controller == nil || controller.UID != job.UID:
			// somebody else's, or nobody's
		case matches && p.active() && !p.tracked && !leaving:
			c.Adopt = append(c.Adopt, p.Pod)
		case matches:
			c.Owned = append(c.Owned, p.Pod)
		case !leaving:
			c.Release = append(c.Release, p.Pod)
		}
	}
	return c, nil
}
