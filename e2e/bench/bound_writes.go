package bench

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedbatchv1 "k8s.io/client-go/kubernetes/typed/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// boundWrites are those without which a Job isn't dispatched, each as cheap for the API servers as
// it can be.
type boundWrites struct {
	ctx         context.Context
	hub, worker typedbatchv1.JobInterface
	name        string
	job         *boundJob
	mu          sync.Locker // guards what is observed of the Job
}

// place writes the placement on the hub: it's there before the mirror is.
func (w *boundWrites) place() error {
	return w.patch(fmt.Sprintf(`{"metadata":{"resourceVersion":%q,"finalizers":[%q]},"status":{"conditions":[{"type":%q,"status":"True","reason":"Placed","message":%q}]}}`,
		w.job.hub.ResourceVersion, v1alpha1.FinalizerMirror, hubstate.Placed, w.job.worker.Name()))
}

// create creates the mirror.
func (w *boundWrites) create() error {
	_, err := w.worker.Create(w.ctx, newJob(boundNamespace, w.name), metav1.CreateOptions{})
	return err
}

// status writes the mirror's status to the hub. In protobuf it costs the API server as much as by a
// patch.
func (w *boundWrites) status() (err error) {
	w.mu.Lock()
	status := w.job.status.DeepCopy()
	w.mu.Unlock()
	next := *w.job.hub
	next.Status = *status
	next.Status.UncountedTerminatedPods = nil // the hub's API server accepts none
	hubstate.Set(&next, hubstate.Changes{hubstate.Cluster: w.job.worker.Name()})
	if next.Status.CompletionTime != nil {
		next.Finalizers = nil
	}
	w.job.hub, err = w.hub.UpdateStatus(w.ctx, &next, metav1.UpdateOptions{})
	return err
}

// remove deletes the mirror.
func (w *boundWrites) remove() error {
	return w.worker.Delete(w.ctx, w.name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)})
}

func (w *boundWrites) patch(content string) (err error) {
	w.job.hub, err = w.hub.Patch(w.ctx, w.name, types.MergePatchType, []byte(content), metav1.PatchOptions{}, "status")
	return err
}
