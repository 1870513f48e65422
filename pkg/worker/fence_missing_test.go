package worker

import (
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubetesting "k8s.io/client-go/testing"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// deleteLease deletes a Lease, which the watch delivers.
func (h *hubs) deleteLease(origin v1alpha1.Origin) {
	h.t.Helper()
	leases := h.leases.CoordinationV1().Leases(v1alpha1.SystemNamespace)
	lease, err := leases.Get(h.t.Context(), origin.FenceLease(), metav1.GetOptions{})
	if err == nil {
		err = leases.Delete(h.t.Context(), origin.FenceLease(), metav1.DeleteOptions{})
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.jobs.fence.observeDeleted(lease)
}

// release writes what a hub writes that has removed this worker.
func (h *hubs) release(origin v1alpha1.Origin) {
	h.t.Helper()
	patch := `{"spec":{"holderIdentity":null,"renewTime":"` + h.clock.Now().UTC().Format(metav1.RFC3339Micro) + `"}}`
	is, err := h.leases.CoordinationV1().Leases(v1alpha1.SystemNamespace).Patch(h.t.Context(), origin.FenceLease(), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	h.jobs.fence.observe(is)
}

// Deleting the Lease of a hub doesn't take its Jobs from the fence: the Lease is created again, and
// the fence closes unless the hub renews it.
func TestDeletedLeaseOpensNothing(t *testing.T) {
	c := newCluster(t, Options{}, aJob(of("hub")))
	h := withHubs(c, 5*time.Minute)
	h.renew("hub", 15*time.Minute)
	c.mustSync()
	h.silence(3 * time.Minute)
	h.deleteLease("hub")
	h.silence(time.Second)
	lease, err := h.leases.CoordinationV1().Leases(v1alpha1.SystemNamespace).Get(t.Context(), "jobferry-fence-hub", metav1.GetOptions{})
	if err != nil || lease.Spec.RenewTime != nil || lease.Labels[v1alpha1.LabelOrigin] != "hub" {
		t.Fatalf("the Lease is %+v, %v", lease, err)
	}
	h.silence(3 * time.Minute)
	if len(h.enqueued) != 1 {
		t.Fatalf("enqueued %v", h.enqueued)
	}
	c.mustSync()
	if !v1alpha1.IsFenced(c.job()) || len(c.pods()) != 0 {
		t.Errorf("annotations %v, %d Pods", c.job().Annotations, len(c.pods()))
	}
}

// Nobody else may create the Lease: then there is none, and the fence closes all the same.
func TestDeletedLeaseThatCannotBeCreated(t *testing.T) {
	c := newCluster(t, Options{}, aJob(of("hub")))
	h := withHubs(c, 5*time.Minute)
	h.renew("hub", 15*time.Minute)
	h.leases.PrependReactor("create", "leases", func(kubetesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("refused")
	})
	h.deleteLease("hub")
	if next := h.jobs.fence.sync(t.Context()); next > restoreRetry {
		t.Errorf("tries again after %s", next)
	}
	h.silence(7 * time.Minute)
	if len(h.enqueued) != 1 {
		t.Errorf("enqueued %v", h.enqueued)
	}
}

// A controller that starts while there is no Lease knows the hubs by their Jobs. It creates no
// Lease for an origin that anybody may have made up, and shows it in no metric.
func TestJobsOfAHubWithoutALease(t *testing.T) {
	c := newCluster(t, Options{}, aJob(of("hub")))
	h := withHubs(c, 5*time.Minute)
	c.mustSync()
	h.silence(4 * time.Minute)
	if len(h.enqueued) != 0 || len(c.pods()) != 2 {
		t.Fatalf("enqueued %v, %d Pods", h.enqueued, len(c.pods()))
	}
	h.silence(3 * time.Minute)
	c.mustSync()
	if len(h.enqueued) != 1 || len(c.pods()) != 0 {
		t.Errorf("enqueued %v, %d Pods", h.enqueued, len(c.pods()))
	}
	shown := make(chan prometheus.Metric, 10)
	if (fenceCollector{h.jobs.fence}).Collect(shown); len(shown) != 0 {
		t.Errorf("%d time series", len(shown))
	}
	for _, a := range h.leases.Actions() {
		if a.GetVerb() == "create" {
			t.Error("a Lease was created")
		}
	}
}

// In drop-in mode, mirrors are run whose hub keeps no Lease, because it counts on the built-in Job
// controller.
func TestMirrorsForTheBuiltInController(t *testing.T) {
	c := newCluster(t, Options{ManagedBy: []string{""}}, aJob(of("hub"), func(j *batchv1.Job) { j.Spec.ManagedBy = nil }))
	h := withHubs(c, 5*time.Minute)
	c.mustSync()
	h.silence(time.Hour)
	c.mustSync()
	if len(c.pods()) != 2 || len(h.enqueued) != 0 {
		t.Errorf("%d Pods, enqueued %v", len(c.pods()), h.enqueued)
	}
}

// The Lease that a hub has released closes nothing, also when it's deleted then.
func TestReleasedLease(t *testing.T) {
	c := newCluster(t, Options{}, aJob(of("hub")))
	h := withHubs(c, 5*time.Minute)
	h.renew("hub", 15*time.Minute)
	h.silence(3 * time.Minute)
	h.release("hub")
	h.silence(time.Hour)
	if len(h.enqueued) != 0 {
		t.Errorf("enqueued %v", h.enqueued)
	}
	h.deleteLease("hub")
	if h.jobs.fence.sync(t.Context()); len(h.jobs.fence.tracker.Origins()) != 0 {
		t.Errorf("known %v", h.jobs.fence.tracker.Origins())
	}
}

// A patch may return after the watch has reported the deletion of the Lease. A hub without Jobs is
// forgotten then.
func TestLeaseThatIsGoneIsForgotten(t *testing.T) {
	h := withHubs(newCluster(t, Options{}), 5*time.Minute)
	h.renew("hub", 15*time.Minute)
	lease, err := h.leases.CoordinationV1().Leases(v1alpha1.SystemNamespace).Get(t.Context(), "jobferry-fence-hub", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	h.deleteLease("hub")
	h.jobs.fence.observe(lease)
	h.silence(time.Hour)
	if len(h.enqueued) != 0 || len(h.jobs.fence.tracker.Origins()) != 0 {
		t.Errorf("enqueued %v, known %v", h.enqueued, h.jobs.fence.tracker.Origins())
	}
}
