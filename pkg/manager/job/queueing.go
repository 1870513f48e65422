package job

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/kueue"
)

// jobController implements kueue.JobController.
type jobController struct {
	*wakeups
	reconciler *Reconciler
}

// Enqueue implements kueue.JobController.
func (c jobController) Enqueue(jobs ...types.NamespacedName) { c.Wake(jobs...) }

// EnqueueUnplaced implements kueue.JobController.
func (c jobController) EnqueueUnplaced() { c.Wake(c.reconciler.waiters.All()...) }

// PlacementResult implements kueue.JobController.
func (c jobController) PlacementResult(uid types.UID) (kueue.PlacementResult, bool) {
	return c.reconciler.placementResults.Of(uid)
}
