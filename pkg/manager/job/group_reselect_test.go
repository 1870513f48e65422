package job

import (
	"errors"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// A Job of a group is sent away from its worker by its selector, and the next one takes none of
// them: the group doesn't go back to where that Job can't follow.
func TestGroupWhoseNextWorkerRefusesIt(t *testing.T) {
	w := newWorld(t)
	for name, v := range w.workers {
		v.view.Labels = map[string]string{"name": name}
	}
	w.watchesGroup()
	w.submitsTrio(2)
	w.wantTrioOn("a")
	refuses := true
	w.refuses = func(sent write) error {
		if refuses && sent.verb == "create" && sent.server == "b" {
			return apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, sent.object.GetName(), errors.New("by a policy"))
		}
		return nil
	}
	w.hub.change(inTeam("driver"), func(job *batchv1.Job) { annotated(v1alpha1.AnnotationClusterSelector, "name!=a")(job) })
	w.step(20 * time.Second)
	refuses = false
	w.step(time.Hour)
	w.wantTrioOn("b")
}

// As before, and a Job of the group has finished in the first worker, before it came along.
func TestGroupDoesntGoBackToAFinishedJob(t *testing.T) {
	w := newWorld(t)
	for name, v := range w.workers {
		v.view.Labels = map[string]string{"name": name}
	}
	w.watchesGroup()
	w.submitsTrio(2)
	w.wantTrioOn("a")
	refuses := true
	w.refuses = func(sent write) error {
		if refuses && sent.verb == "create" && sent.server == "b" && sent.object.GetName() == "worker-0" {
			return apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, sent.object.GetName(), errors.New("by a policy"))
		}
		return nil
	}
	w.hub.change(inTeam("driver"), func(job *batchv1.Job) { annotated(v1alpha1.AnnotationClusterSelector, "name!=a")(job) })
	w.worker("a").api.change(inTeam("worker-1"), func(job *batchv1.Job) { job.Status.Succeeded = *job.Spec.Completions })
	w.step(20 * time.Second)
	refuses = false
	w.step(time.Hour)
	w.wantPlaced(map[string]string{"driver": "b", "worker-0": "b"})
}
