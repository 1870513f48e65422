package clusters

import (
	"time"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/ownwrite"
)

// ownWrite is what was last written of a WorkerCluster's status, and when. Until the cache has it,
// too, a reconcile would otherwise find the same change and write its event again.
type ownWrite struct {
	at     time.Time // zero: not by this process
	answer *v1alpha1.WorkerCluster
}

// latest is the WorkerCluster as it was written last, or as the cache has it, if that's newer.
func (w ownWrite) latest(cached *v1alpha1.WorkerCluster) *v1alpha1.WorkerCluster {
	if w.answer == nil || w.answer.UID != cached.UID || !ownwrite.Newer(w.answer, cached) {
		return cached.DeepCopy()
	}
	return w.answer.DeepCopy()
}
