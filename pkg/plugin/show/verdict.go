package show

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// verdict is what speaks for or against a worker, as far as the hub's objects tell: what placement
// asks first.
func verdict(job *batchv1.Job, w *v1alpha1.WorkerCluster) Cell {
	selector, err := labels.Parse(job.Annotations[v1alpha1.AnnotationClusterSelector])
	switch {
	case Worker(job) == w.Name:
		return Cell{"it is here", Good}
	case err != nil:
		return Cell{fmt.Sprintf("the selector can't be read: %v", err), Bad}
	case !selector.Matches(labels.Set(w.Labels)):
		return Cell{"doesn't match the selector", Faint}
	case !meta.IsStatusConditionTrue(w.Status.Conditions, v1alpha1.ConditionReady):
		return Cell{"not ready", Bad}
	case !meta.IsStatusConditionTrue(w.Status.Conditions, v1alpha1.ConditionSchedulable):
		return Cell{"takes no new Jobs" + inParentheses(w, v1alpha1.ConditionSchedulable), Warn}
	default:
		return Text("can be chosen, if the Job fits")
	}
}
