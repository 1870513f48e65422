package job

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// Two workers keep the mirrors of a divided Job that is deleted, and show them in turn: the hub
// waits for each of them once.
func TestMirrorsThatAreKeptAndShownInTurn(t *testing.T) {
	w := newWorld(t)
	isDivided(w)
	shows := func(worker string, shown bool) {
		w.worker(worker).api.change(jobKey, func(m *batchv1.Job) {
			m.Finalizers = []string{"example.org/mine"}
			if delete(m.Labels, v1alpha1.LabelOrigin); shown {
				metav1.SetMetaDataLabel(&m.ObjectMeta, v1alpha1.LabelOrigin, "hub-1")
			}
		})
	}
	w.refuses = func(sent write) error {
		if sent.server != "hub" && sent.verb == "get" {
			return apierrors.NewTimeoutError("slow", 1)
		}
		return nil
	}
	shows("a", true)
	shows("b", true)
	w.deletes(metav1.DeletePropagationBackground)
	for i := range 6 {
		w.step(time.Minute)
		shows("a", i%2 == 0)
		shows("b", i%2 != 0)
	}
	if w.hub.jobs[jobKey] != nil {
		w.fail("the hub still waits:\n%s", w.state())
	}
}
