package mirror

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/digest"
)

// AgreedDigest is a digest of what Drift reads of a Job that runs, of its mirror and of the target:
// all but the statuses, which don't matter then. Drift gives the same answer as long as the digest
// is the same. API servers count the changes of a spec by its generation. Zero: the statuses
// matter.
func AgreedDigest(hub, mirror *batchv1.Job, target Target) digest.Digest {
	switch {
	case Suspended(hub), Suspended(mirror), Finished(hub), Finished(mirror), workQueue(hub):
		return 0
	case target.Suspended, target.FreshStart, target.Indexes != nil, !IsFor(target.JobController, mirror):
		return 0
	case hub.Generation == 0, mirror.Generation == 0, mirror.DeletionTimestamp != nil:
		return 0
	}
	sum := digest.Of(pair{
		hub.UID, mirror.UID, hub.Generation, mirror.Generation, target.Origin, target.JobController, target.Minor, target.Recent == nil, Light(mirror),
	})
	for i, m := range []map[string]string{hub.Labels, hub.Annotations, mirror.Labels, mirror.Annotations, deref(target.Recent)} {
		for key, value := range m {
			sum += digest.Of(entry{i, key, value})
		}
	}
	for i, finalizer := range mirror.Finalizers {
		sum += digest.Of(entry{-1 - i, finalizer, ""})
	}
	return sum
}

// pair are a Job and its mirror, and where that is.
type pair struct {
	hub, mirror                     types.UID
	hubGeneration, mirrorGeneration int64
	origin                          v1alpha1.Origin
	controller                      v1alpha1.JobController
	minor                           int
	recentUnknown, light            bool
}

// entry is one of a map, in any order, or of a list.
type entry struct {
	of         int
	key, value string
}
