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
// needs a place. A Job for which there is none comes again, so that it holds up no other.
type wholeJobs struct {
	*places
	client client.Client
	live   client.Reader
	// weight is what a Job takes at most while it's read whole, as far as is known before.
	weight func(types.UID) int64
}

func newWholeJobs(hub client.Client, live client.Reader, clock clock.WithDelayedExecution, weight func(types.UID) int64) *wholeJobs {
	if weight == nil {
		weight = func(types.UID) int64 { return packed.SmallWeight }
	}
	return &wholeJobs{places: newPlaces(clock), client: hub, live: live, weight: weight}
}

// allowance is what one turn holds of the memory for whole Jobs, for all of its reads: they follow
// each other, and are of one Job. It's released at the end of the turn.
type allowance struct {
	place
	*wholeJobs
	// reading is held while a large Job is read.
	reading sync.Mutex
}

func (w *wholeJobs) open(key types.NamespacedName) *allowance {
	return &allowance{place: place{places: w.places, key: key}, wholeJobs: w}
}

// ask has a request made whose answer is a Job of some weight: those of large ones follow each
// other.
func (a *allowance) ask(weight int64, request func() (*batchv1.Job, error)) error {
	if !a.reserve(weight) {
		return errNoPlace
	}
	if weight > packed.SmallWeight {
		a.reading.Lock()
		defer a.reading.Unlock()
	}
	job, err := request()
	if err == nil {
		a.correct(packed.WeightOf(job))
	}
	return err
}

// refresh reads the Job of a snapshot again, with its template and what is seen of its recent
// fields, if a decision may need them. It returns the Job with all that the API server sends, if
// that was read.
func (a *allowance) refresh(ctx context.Context, s *dispatch.Snapshot, seen *seenSpec, isEdited bool) (*mirror.Whole, error) {
	var whole *mirror.Whole
	var job *batchv1.Job
	var err error
	isKnown := seen.of(s.Job) && !isEdited
	switch needed := mirror.Light(s.Job) && needsTemplate(s); {
	case needed && isKnown:
		job, err = a.read(ctx, s.Job.UID)
	case needed, isEdited:
		if whole, err = a.readWhole(ctx, s.Job.UID); err == nil {
			job = whole.Job
		}
	default:
		return nil, nil
	}
	if err == nil && isKnown && !seen.of(job) {
		err = errStale
	}
	if err := takeOver(s, job, err); err != nil {
		return nil, err
	}
	if whole != nil {
		*seen = seenSpec{job.Generation, whole.Recent}
	}
	return whole, nil
}

// complete reads the Job of a snapshot again, if the cache has a stub of it.
func (a *allowance) complete(ctx context.Context, s *dispatch.Snapshot) error {
	if s.Job == nil || !packed.IsStub(s.Job) {
		return nil
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

// read returns a Job past the cache, as far as the types know it.
func (a *allowance) read(ctx context.Context, of types.UID) (*batchv1.Job, error) {
	var job batchv1.Job
	return &job, a.ask(a.weight(of), func() (*batchv1.Job, error) {
		return &job, a.live.Get(ctx, a.key, &job)
	})
}

// readWhole returns a Job past the cache, with all that the API server sends.
func (a *allowance) readWhole(ctx context.Context, of types.UID) (*mirror.Whole, error) {
	return a.readWeighed(ctx, a.weight(of))
}

// readWeighed is readWhole of a Job of some weight.
func (a *allowance) readWeighed(ctx context.Context, weight int64) (*mirror.Whole, error) {
	return a.askWhole(weight, func(answer client.Object) error { return a.live.Get(ctx, a.key, answer) })
}

func (a *allowance) askWhole(weight int64, request func(client.Object) error) (whole *mirror.Whole, err error) {
	err = a.ask(weight, func() (*batchv1.Job, error) {
		answer := untyped(a.key)
		if err := request(answer); err != nil {
			return nil, err
		}
		if whole, err = mirror.NewWhole(answer.Object); err != nil {
			return nil, err
		}
		return whole.Job, nil
	})
	return whole, err
}

// patch patches a Job, and returns the answer as far as the types know it.
func (a *allowance) patch(ctx context.Context, of types.UID, patch client.Patch) (*batchv1.Job, error) {
	answer := namedBy(a.key)
	return answer, a.ask(a.weight(of), func() (*batchv1.Job, error) { return answer, a.client.Patch(ctx, answer, patch) })
}

// patchStatus is patch for the status.
func (a *allowance) patchStatus(ctx context.Context, of types.UID, patch client.Patch) (*batchv1.Job, error) {
	answer := namedBy(a.key)
	return answer, a.ask(a.weight(of), func() (*batchv1.Job, error) { return answer, a.client.Status().Patch(ctx, answer, patch) })
}

// patchWhole is patch with all that the API server sends in the answer.
func (a *allowance) patchWhole(ctx context.Context, of types.UID, patch client.Patch) (*mirror.Whole, error) {
	return a.askWhole(a.weight(of), func(answer client.Object) error { return a.client.Patch(ctx, answer, patch) })
}
