package job

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/placement"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// unwantedAt says why a Job is to leave the worker that it's placed on; empty: it isn't. The
// cluster selector counts when it has been changed since the Job was placed: other labels of a
// worker move no Jobs, as other labels of a node move no Pods.
func unwantedAt(job *batchv1.Job, view clusters.View, worker string) string {
	if mirror.Finished(job) {
		return ""
	}
	if view.Spec.Drain {
		return "worker " + worker + " is drained"
	}
	selector := job.Annotations[v1alpha1.AnnotationClusterSelector]
	if selector == job.Annotations[v1alpha1.AnnotationPlacedFor] {
		return ""
	}
	wanted, err := placement.ParseSelector(job.Annotations)
	if err != nil || wanted == nil || wanted.Matches(labels.Set(view.Labels)) {
		return "" // what can't be read moves nothing
	}
	return fmt.Sprintf("the Job's cluster selector is %q now, which worker %s doesn't match", selector, worker)
}

// lossOf is what is made of a worker that isn't in touch.
func (r *Reconciler) lossOf(w *clusters.Worker) dispatch.Loss {
	if w.Synced() {
		return dispatch.Loss{}
	}
	loss := r.workers.Loss(w.Name())
	return dispatch.Loss{
		Lost: loss.State == clusters.Lost, Isolated: loss.State == clusters.Isolated,
		Since: loss.Since, At: loss.At,
	}
}
