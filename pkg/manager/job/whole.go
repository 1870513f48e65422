package job

import (
	"context"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/packed"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// wholeJobs is the only way to all that the hub has of a Job: each read past the cache, and each
// answer to a write. A Job of 1.4 MB can take a hundred times as much while it's read, so that it
// needs a share of readMemory. A Job for which there is none comes again, so that it holds up no
// other.
//
// What the cache doesn't hold of a Job is read each time that it's looked at, and its workers have
// it looked at often. So these reads are paced, for each namespace. Large objects that are carried
// along with Jobs have their shares among the Jobs.
type wholeJobs struct {
	*readMemory
	client client.Client
	live   client.Reader
	// weight is what a Job takes at most while it's read whole, as far as is known before.
	weight func(types.UID) int64
	looks  *pace
}

func newWholeJobs(hub client.Client, live client.Reader, clock clock.WithDelayedExecution, weight func(types.UID) int64) *wholeJobs {
	if weight == nil {
		weight = func(types.UID) int64 { return packed.SmallWeight }
	}
	return &wholeJobs{
		readMemory: newReadMemory(clock), client: hub, live: live, weight: weight, looks: newPace(clock, lookBytes, lookAhead),
	}
}

// allowance is what one turn holds of the memory for whole Jobs, for all of its reads: they follow
// each other, and are of one Job. It's released at the end of the turn.
type allowance struct {
	readShare
	*wholeJobs
	// reading is held while a large Job is read.
	reading sync.Mutex
}

func (w *wholeJobs) open(key types.NamespacedName) *allowance {
	return &allowance{readShare: readShare{readMemory: w.readMemory, key: key}, wholeJobs: w}
}

// Reserve implements copier.Memory: for what is carried along, beside what is held for the Job.
// It's paced as looks at Jobs are.
func (a *allowance) Reserve(bytes int64) (release func(used int64), err error) {
	namespace := a.key.Namespace
	if a.looks.isAhead(namespace) || !a.reserveMore(bytes) {
		return nil, errNoMemory
	}
	return func(used int64) {
		a.giveBack(bytes)
		a.looks.reserve(namespace, used)
	}, nil
}

// refresh reads the Job of a snapshot again, with its template and what is seen of its recent
// fields, if a decision may need them.
func (a *allowance) refresh(ctx context.Context, s *dispatch.Snapshot, seen *seenSpec, isEdited bool) error {
	var whole *mirror.Whole
	var job *batchv1.Job
	var err error
	isKnown, needed := seen.of(s.Job), mirror.Light(s.Job) && needsTemplate(s)
	switch {
	case !needed && !isEdited:
		return nil
	case !a.looks.mayLook(a.key.Namespace, a.weight(s.Job.UID)):
		err = errNoMemory
	case isKnown:
		job, err = a.read(ctx, s.Job.UID)
	default:
		if whole, err = a.readWhole(ctx, s.Job.UID); err == nil {
			job = whole.Job
		}
	}
	if err == nil && isKnown && !seen.of(job) {
		err = errStale
	}
	if err := takeOver(s, job, err); err != nil {
		return err
	}
	if whole != nil {
		*seen = seenSpec{job.Generation, whole.Recent}
	}
	return nil
}

// complete reads the Job of a snapshot again, if the cache has a stub of it.
func (a *allowance) complete(ctx context.Context, s *dispatch.Snapshot) error {
	if s.Job == nil || !packed.IsStub(s.Job) {
		return nil
	}
	if !a.looks.mayLook(a.key.Namespace, a.weight(s.Job.UID)) {
		return errNoMemory
	}
	job, err := a.read(ctx, s.Job.UID)
	return takeOver(s, job, err)
}

// takeOver puts the answer to a read of its Job into a snapshot.
func takeOver(s *dispatch.Snapshot, job *batchv1.Job, err error) error {
	switch {
	case apierrors.IsNotFound(err), err == nil && job.UID != s.Job.UID:
		return errStale
	case err != nil:
		return err
	}
	job.ManagedFields = nil
	job.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("Job"))
	s.Job = job
	return nil
}

// needsTemplate reports whether a Job has or gets a mirror. One that has ended or is being deleted
// needs nothing more, and a suspended one nothing until it's placed or resumed.
func needsTemplate(s *dispatch.Snapshot) bool {
	switch {
	case !mirror.Managed(s.Job) || mirror.Finished(s.Job) || s.Job.DeletionTimestamp != nil:
		return false
	case len(shards.WorkersOf(s.Job)) > 0:
		return true
	default:
		return s.NotDispatched == "" && s.Admission.WantsCapacity(s.Job)
	}
}
