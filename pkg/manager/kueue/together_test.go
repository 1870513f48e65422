package kueue

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// countedJobs is a JobController of a JobSet, which counts how often its Jobs are enqueued.
type countedJobs struct {
	grouped

	enqueued atomic.Int32
}

func (c *countedJobs) EnqueueRelated(...types.NamespacedName) { c.enqueued.Add(1) }

// A tenant has very many Workloads that all stand for one JobSet, and deletes them at once: its
// Jobs are looked at for the first, and then once a second. Those of another JobSet don't wait for
// that.
func TestManyWorkloadsOfAJobSetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs := &countedJobs{}
		r := &workloadReconciler{session: &session{jobs: jobs}}
		goes := func(i int, set types.UID) {
			r.workloadEvents().Delete(t.Context(), event.TypedDeleteEvent[*kueue.Workload]{Object: &kueue.Workload{
				ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprint("w-", i), OwnerReferences: []metav1.OwnerReference{{
					APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: string(set), UID: set, Controller: ptr.To(true),
				}}},
				Status: kueue.WorkloadStatus{AdmissionChecks: []kueue.AdmissionCheckState{{Name: "check"}}},
			}}, nil)
		}
		want := func(enqueued int32) {
			t.Helper()
			if got := jobs.enqueued.Load(); got != enqueued {
				t.Errorf("the Jobs are enqueued %d times, want %d", got, enqueued)
			}
		}
		for i := range 1000 {
			goes(i, "set")
		}
		want(1)
		goes(0, "other")
		want(2)
		<-time.After(groupPause + time.Millisecond)
		synctest.Wait()
		want(3)
		<-time.After(3 * groupPause)
		synctest.Wait()
		want(3)
		goes(0, "set")
		want(4)
		<-time.After(3 * groupPause)
		synctest.Wait()
		r.changes.mu.Lock()
		defer r.changes.mu.Unlock()
		if len(r.changes.seen) != 0 {
			t.Errorf("remembered: %v", r.changes.seen)
		}
	})
}
