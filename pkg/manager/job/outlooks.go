package job

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/kueue"
	"github.com/jobferry/jobferry/pkg/manager/placement"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// placementResults holds the last placement result of each suspended Job with reserved quota. Each
// reconcile of the Job computes it anew.
type placementResults struct {
	mu      sync.Mutex
	jobs    map[types.UID]kueue.PlacementResult
	changed func(types.NamespacedName)
}

func newPlacementResults(changed func(types.NamespacedName)) *placementResults {
	return &placementResults{jobs: map[types.UID]kueue.PlacementResult{}, changed: changed}
}

// Placed records that capacity in a worker is reserved for a Job.
func (o *placementResults) Placed(s *dispatch.Snapshot) {
	o.set(s, kueue.PlacementResult{ReservedAt: s.Admission.ReservedAt, Worker: s.Home.Worker})
}

// Unplaced records a decision that found no worker.
func (o *placementResults) Unplaced(s *dispatch.Snapshot, decision placement.Decision) {
	o.set(s, kueue.PlacementResult{ReservedAt: s.Admission.ReservedAt, Reason: decision.Named(), MayFitLater: decision.MayFitLater()})
}

func (o *placementResults) set(s *dispatch.Snapshot, result kueue.PlacementResult) {
	if !s.Admission.QuotaReserved || !mirror.Suspended(s.Job) {
		return
	}
	o.mu.Lock()
	before := o.jobs[s.Job.UID]
	o.jobs[s.Job.UID] = result
	o.mu.Unlock()
	if before != result {
		o.changed(s.Key)
	}
}

// Of implements kueue.JobController.
func (o *placementResults) Of(uid types.UID) (kueue.PlacementResult, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	result, known := o.jobs[uid]
	return result, known
}

// Forget drops a Job.
func (o *placementResults) Forget(uid types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.jobs, uid)
}
