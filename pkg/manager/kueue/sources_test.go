package kueue

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/flapping"
)

// A worker that changes all the time, as its API server pleases, has all Workloads looked at now
// and then. Another worker's changes are looked at as ever.
func TestAFlappingWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workloads = 20
		scheme := runtime.NewScheme()
		if err := kueue.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		hub := fake.NewClientBuilder().WithScheme(scheme)
		for i := range workloads {
			w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprint("w", i)}}
			w.Status.AdmissionChecks = []kueue.AdmissionCheckState{{Name: "check"}}
			hub.WithObjects(w)
		}
		r := &workloadReconciler{session: &session{objects: uncached{Reader: hub.Build()}}, flapping: flapping.NewPace(clock.RealClock{})}
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
		defer q.ShutDown()
		// looked reports whether all Workloads are to be reconciled.
		looked := func() bool {
			all := q.Len() == workloads
			for q.Len() > 0 {
				request, _ := q.Get()
				q.Done(request)
			}
			return all
		}
		worker := func(name string) *v1alpha1.WorkerCluster {
			return &v1alpha1.WorkerCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		}
		events := r.workerEvents()
		looks := func(name string) (looks int) {
			for range 10 * flapping.SteadyChanges {
				events.Update(t.Context(), event.TypedUpdateEvent[*v1alpha1.WorkerCluster]{ObjectOld: worker(name), ObjectNew: worker(name)}, q)
				if looked() {
					looks++
				}
			}
			return looks
		}
		for _, name := range []string{"a", "b"} {
			if n := looks(name); n != flapping.SteadyChanges {
				t.Errorf("all Workloads are looked at %d times for changes of worker %s", n, name)
			}
		}
		<-time.After(flapping.Delay)
		synctest.Wait()
		if !looked() {
			t.Error("the last changes aren't looked at")
		}
		events.Delete(t.Context(), event.TypedDeleteEvent[*v1alpha1.WorkerCluster]{Object: worker("a")}, q)
		if !looked() {
			t.Error("the worker's end isn't looked at")
		}
	})
}
