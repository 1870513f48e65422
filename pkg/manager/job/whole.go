package job

import (
	"context"
	"errors"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// wholeJobs reads Jobs from the hub that its cache holds without their Pod templates, or whose
// recent fields aren't known, a few at a time, and fewer of one namespace: each can have more than
// a megabyte. A Job for which there is no place comes again, so that it holds up no other.
type wholeJobs struct {
	live client.Reader

	mu         sync.Mutex
	places     int
	namespaces map[string]int
}

const (
	wholeAtATime      = 8
	wholeOfOneAtATime = 4
)

// errNoPlace: as many Jobs as may be are being read whole.
var errNoPlace = errors.New("as many Jobs as may be are being read from the hub")

func newWholeJobs(live client.Reader) *wholeJobs {
	return &wholeJobs{live: live, namespaces: map[string]int{}}
}

// acquire takes a place; false: there is none.
func (w *wholeJobs) acquire(namespace string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.places >= wholeAtATime || w.namespaces[namespace] >= wholeOfOneAtATime {
		return false
	}
	w.places++
	w.namespaces[namespace]++
	return true
}

func (w *wholeJobs) release(namespace string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.places--
	if w.namespaces[namespace]--; w.namespaces[namespace] == 0 {
		delete(w.namespaces, namespace)
	}
}

// read returns the Job of a snapshot with its template and its recent fields, if a decision may
// need them; nil: it doesn't.
func (w *wholeJobs) read(ctx context.Context, s *dispatch.Snapshot, isDue bool) (*mirror.Whole, error) {
	if !isDue && (!mirror.Light(s.Job) || !needsTemplate(s)) {
		return nil, nil
	}
	if !w.acquire(s.Key.Namespace) {
		return nil, errNoPlace
	}
	defer w.release(s.Key.Namespace)
	whole, err := readWhole(ctx, w.live, s.Key)
	switch {
	case apierrors.IsNotFound(err) || err == nil && whole.Job.UID != s.Job.UID:
		return nil, errStale
	case err != nil:
		return nil, err
	}
	whole.Job.ManagedFields = nil
	return whole, nil
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
