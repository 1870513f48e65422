package job

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

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
// answer to a write. A Job of 1.4 MB can take a hundred times as much while it's read. So the Jobs
// that are read at once take wholeBytes at most, and those of one namespace wholeOfNamespace. A
// larger Job is read while no other is. A Job for which there is no place comes again, so that it
// holds up no other. Small Jobs need no place: no more of them are read than are reconciled at
// once.
//
// What the cache doesn't hold of a Job is read each time that it's looked at, and its workers have
// it looked at often. So these reads are paced, for each namespace. Large objects that are carried
// along with Jobs have their places among the Jobs.
type wholeJobs struct {
	client client.Client
	live   client.Reader
	clock  clock.PassiveClock
	// weight is what a Job takes at most while it's read whole, as far as is known before.
	weight func(types.UID) int64

	mu         sync.Mutex
	held       int64
	namespaces map[string]int64
	// next are the namespaces for whose Jobs there was no place, in the order in which they get one.
	next []waiter
	// readUntil is until when the reads of a namespace for looks at its Jobs are as many as may be.
	readUntil map[string]time.Time
}

// waiter is a namespace for whose Job there was no place, last at some time.
type waiter struct {
	namespace string
	at        time.Time
}

const (
	wholeBytes       = 64 << 20
	wholeOfNamespace = 32 << 20
	// waitsFor is how long a place is kept for a namespace that doesn't ask again.
	waitsFor = 2 * awaitAtMost
	// lookBytes is how much one namespace may read in a second for looks at its Jobs, by their
	// weights, and lookAhead for how many seconds in advance.
	lookBytes = 32 << 20
	lookAhead = 10 * time.Second
)

// errNoPlace: the Jobs that are being read whole leave no memory for this one.
var errNoPlace = errors.New("as many Jobs as may be are being read from the hub")

func newWholeJobs(hub client.Client, live client.Reader, clock clock.PassiveClock, weight func(types.UID) int64) *wholeJobs {
	if weight == nil {
		weight = func(types.UID) int64 { return packed.SmallWeight }
	}
	return &wholeJobs{client: hub, live: live, clock: clock, weight: weight, namespaces: map[string]int64{}, readUntil: map[string]time.Time{}}
}

// allowance is what one turn holds of the memory for whole Jobs, for all of its reads: they follow
// each other, and are of one Job. It's released at the end of the turn.
type allowance struct {
	*wholeJobs
	key types.NamespacedName
	// isOnce: nobody asks again, so its namespace isn't among the next.
	isOnce bool
	// reading is held while a large Job is read.
	reading sync.Mutex
	bytes   int64
}

func (w *wholeJobs) open(key types.NamespacedName) *allowance {
	return &allowance{wholeJobs: w, key: key}
}

// reserve takes what a Job needs; false: there is no place for it.
func (a *allowance) reserve(weight int64) bool {
	if weight <= packed.SmallWeight {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reserveLocked(weight)
}

func (a *allowance) reserveLocked(weight int64) bool {
	if weight <= a.bytes {
		return true
	}
	now, namespace := a.clock.Now(), a.key.Namespace
	a.next = slices.DeleteFunc(a.next, func(w waiter) bool { return now.Sub(w.at) > waitsFor })
	others, ofOthers := a.held-a.bytes, a.namespaces[namespace]-a.bytes
	i := slices.IndexFunc(a.next, func(w waiter) bool { return w.namespace == namespace })
	switch {
	case ofOthers > 0 && ofOthers+weight > wholeOfNamespace:
		return false // it waits for Jobs of its own namespace
	case others > 0 && others+weight > wholeBytes, len(a.next) > 0 && i != 0:
		if a.isOnce {
			return false
		}
		if i < 0 {
			a.next = append(a.next, waiter{namespace, now})
		} else {
			a.next[i].at = now
		}
		return false
	case i == 0:
		a.next = a.next[1:]
	}
	a.addLocked(weight - a.bytes)
	return true
}

// mayLook reports whether the pace of the namespace allows to read a Job for a look at it, and
// counts that.
func (a *allowance) mayLook(job types.UID) bool {
	weight := a.weight(job)
	if weight <= packed.SmallWeight {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.isAheadLocked() {
		return false
	}
	a.spendLocked(weight)
	return true
}

// Reserve implements copier.Memory: for what is carried along, beside what is held for the Job.
// It's paced as looks at Jobs are.
func (a *allowance) Reserve(bytes int64) (release func(used int64), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.isAheadLocked() || !a.reserveLocked(a.bytes+bytes) {
		return nil, errNoPlace
	}
	return func(used int64) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.addLocked(-bytes)
		a.spendLocked(used)
	}, nil
}

// isAheadLocked reports whether the namespace has read for looks as much as it may.
func (a *allowance) isAheadLocked() bool {
	return a.readUntil[a.key.Namespace].Sub(a.clock.Now()) > lookAhead
}

func (a *allowance) spendLocked(bytes int64) {
	now := a.clock.Now()
	maps.DeleteFunc(a.readUntil, func(_ string, until time.Time) bool { return until.Before(now) })
	until := later(a.readUntil[a.key.Namespace], now)
	a.readUntil[a.key.Namespace] = until.Add(time.Duration(float64(bytes) / lookBytes * float64(time.Second)))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// correct takes what a Job has needed, if that is more than was known before.
func (a *allowance) correct(job *batchv1.Job) {
	weight := packed.WeightOf(job)
	a.mu.Lock()
	defer a.mu.Unlock()
	if weight > packed.SmallWeight && weight > a.bytes {
		a.addLocked(weight - a.bytes)
	}
}

func (a *allowance) addLocked(bytes int64) {
	a.bytes += bytes
	a.held += bytes
	if a.namespaces[a.key.Namespace] += bytes; a.namespaces[a.key.Namespace] == 0 {
		delete(a.namespaces, a.key.Namespace)
	}
}

// release gives back what the turn holds.
func (a *allowance) release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.addLocked(-a.bytes)
}

// refresh reads the Job of a snapshot again, with its template and what is seen of its recent
// fields, if a decision may need them. It returns the Job with all that the API server sends, if
// that was read.
func (a *allowance) refresh(ctx context.Context, s *dispatch.Snapshot, seen *seenSpec, isEdited bool) (*mirror.Whole, error) {
	var whole *mirror.Whole
	var job *batchv1.Job
	var err error
	isKnown, needed := seen.of(s.Job) && !isEdited, mirror.Light(s.Job) && needsTemplate(s)
	switch {
	case !needed && !isEdited:
		return nil, nil
	case !a.mayLook(s.Job.UID):
		err = errNoPlace
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
	if !a.mayLook(s.Job.UID) {
		return errNoPlace
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
