package job

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/packed"
	"github.com/jobferry/jobferry/pkg/util/decoded"
	"github.com/jobferry/jobferry/pkg/util/ownwrite"
)

// ownWriteExpires is how long a write is remembered if the cache never shows it: the object may
// have been changed back, or deleted, before the watch saw it.
const ownWriteExpires = time.Minute

// ownWrite is the last write of this process to a Job, until the cache has caught up, so that no
// decision rests on a state that it has replaced.
type ownWrite struct {
	job     *batchv1.Job // as the API server answered; nil: a deletion, or nothing
	deleted types.UID
	// isGone: nothing keeps what was deleted.
	isGone bool
	at     time.Time
	// bytes is what an answer of a worker takes in memory.
	bytes int64
}

// hasExpired reports whether an answer is remembered in vain.
func (w ownWrite) hasExpired(now time.Time) bool {
	return w.job != nil && now.Sub(w.at) > ownWriteExpires
}

// maxHeldAnswer is up to how many bytes a hub Job takes as it's decoded that is remembered whole as
// the hub answered. Many may be: no turn has a share of memory for them.
const maxHeldAnswer = packed.SmallWeight

// heldOf is what is remembered of a hub Job as the hub answered: of a large one a stub, as the
// cache may hold it. The next turn reads that Job again.
func heldOf(answer *batchv1.Job) *batchv1.Job {
	if decoded.Size(answer) <= maxHeldAnswer {
		return answer
	}
	stub := *answer
	packed.MakeStub(&stub)
	return &stub
}

// latest returns the newer of what the cache has and what was written; nil: there is no such Job.
// Callers must not modify it. Copy the ownWrite before you read the cache: a write that the watch
// drops in between is in the cache by then.
func (w ownWrite) latest(cached *batchv1.Job, now time.Time) *batchv1.Job {
	switch {
	case now.Sub(w.at) > ownWriteExpires:
		return cached
	case w.job != nil && (cached == nil || ownwrite.Newer(w.job, cached)):
		return w.job
	case w.isGone && cached != nil && cached.UID == w.deleted:
		return nil
	case w.job == nil && cached != nil && cached.UID == w.deleted && cached.DeletionTimestamp == nil:
		leaving := cached.DeepCopy()
		leaving.DeletionTimestamp = &metav1.Time{Time: w.at}
		return leaving
	default:
		return cached
	}
}

// observe drops the write if a Job from the watch shows it, and reports whether the Job is just
// what was written.
func (w *ownWrite) observe(job *batchv1.Job) (echo bool) {
	switch {
	case w.job != nil && !ownwrite.Newer(w.job, job):
		echo = w.job.ResourceVersion == job.ResourceVersion
		*w = ownWrite{}
	case w.deleted == job.UID && job.DeletionTimestamp != nil:
		*w = ownWrite{}
	}
	return echo
}

func keyOf(job *batchv1.Job) types.NamespacedName {
	return types.NamespacedName{Namespace: job.Namespace, Name: job.Name}
}
