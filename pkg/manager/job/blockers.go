package job

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/util/pages"
)

// blocker is the object in a worker that a refusal is about: it keeps a mirror out by what it is,
// or by not being there.
type blocker struct {
	kind schema.GroupVersionKind
	name types.NamespacedName
	// blocks reports whether the object still keeps the mirror out; nil: there is none of that name.
	blocks func(*metav1.PartialObjectMetadata) bool
}

// foreignJob has the name of a mirror. Of it, which may be large, only the UID is kept.
func foreignJob(key types.NamespacedName, uid types.UID) *blocker {
	return &blocker{batchv1.SchemeGroupVersion.WithKind("Job"), key, func(is *metav1.PartialObjectMetadata) bool {
		return is != nil && is.UID == uid
	}}
}

// terminatingNamespace takes no new objects.
func terminatingNamespace(name string) *blocker {
	return &blocker{corev1.SchemeGroupVersion.WithKind("Namespace"), types.NamespacedName{Name: name}, func(is *metav1.PartialObjectMetadata) bool {
		return is != nil && is.DeletionTimestamp != nil
	}}
}

// missingNamespace is one that the manager may not create: its WorkerCluster says so.
func missingNamespace(w worker, name string) *blocker {
	return &blocker{corev1.SchemeGroupVersion.WithKind("Namespace"), types.NamespacedName{Name: name}, func(is *metav1.PartialObjectMetadata) bool {
		return is == nil && !createsNamespaces(w)
	}}
}

// blockerOf is what the answer of a worker's API server says to be in the way of a new object; nil:
// nothing that a look would show.
func blockerOf(w worker, namespace string, err error) *blocker {
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return terminatingNamespace(namespace)
	case apierrors.IsNotFound(err):
		return missingNamespace(w, namespace)
	default:
		return nil
	}
}

// isIn looks at the blocker in a worker. The hub's account may list Jobs and namespaces, but not
// get each of them.
func (b *blocker) isIn(ctx context.Context, worker client.Reader) (bool, error) {
	found := &metav1.PartialObjectMetadataList{}
	found.SetGroupVersionKind(b.kind.GroupVersion().WithKind(b.kind.Kind + "List"))
	byName := client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector(metav1.ObjectNameField, b.name.Name)}
	if err := worker.List(pages.Within(ctx, maxLook), found, client.InNamespace(b.name.Namespace), byName); err != nil {
		return false, err //nolint:wrapcheck // only its kind matters
	}
	i := slices.IndexFunc(found.Items, func(o metav1.PartialObjectMetadata) bool { return o.Name == b.name.Name })
	if i < 0 {
		return b.blocks(nil), nil
	}
	return b.blocks(&found.Items[i]), nil
}

const (
	// minLookWait is the wait before the first look at a blocker. It doubles with each further one.
	minLookWait = 2 * time.Second
	maxLookWait = 30 * time.Second
	// looksPerSecond bounds the looks in one worker.
	looksPerSecond = 5
	maxLook        = 64 << 10
)

// blockers are looked at for as long as Jobs are refused because of them: one look serves all Jobs
// that have the blocker in common.
type blockers struct {
	clock clock.WithDelayedExecution
	// reader reads from a worker; nil: it's not registered.
	reader func(worker string) client.Reader
	// gone is called with the Jobs that a blocker kept out of a worker.
	gone func(at blockedAt, jobs []types.NamespacedName)

	mu      sync.Mutex
	watched map[blockedAt]*watchedBlocker
	paces   map[string]flowcontrol.PassiveRateLimiter
}

// blockedAt is where a blocker is; zero: nowhere.
type blockedAt struct {
	worker string
	kind   schema.GroupVersionKind
	name   types.NamespacedName
}

type watchedBlocker struct {
	*blocker
	jobs map[types.NamespacedName]struct{}
	// wait is that before the next look. It's kept when the blocker is gone, as it may come back.
	wait time.Duration
	// until is when the last refusal because of it ends by itself.
	until time.Time
}

func newBlockers(clock clock.WithDelayedExecution, reader func(string) client.Reader, gone func(blockedAt, []types.NamespacedName)) *blockers {
	return &blockers{
		clock: clock, reader: reader, gone: gone,
		watched: map[blockedAt]*watchedBlocker{}, paces: map[string]flowcontrol.PassiveRateLimiter{},
	}
}

// watch has a blocker looked at that keeps a Job out of a worker until some time.
func (b *blockers) watch(worker string, is *blocker, job types.NamespacedName, until time.Time) blockedAt {
	at := blockedAt{worker, is.kind, is.name}
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.watched[at]
	if w == nil {
		w = &watchedBlocker{jobs: map[types.NamespacedName]struct{}{}, wait: minLookWait}
		b.watched[at] = w
		b.lookLater(at, w)
	}
	w.blocker, w.until = is, until
	w.jobs[job] = struct{}{}
	return at
}

func (b *blockers) lookLater(at blockedAt, w *watchedBlocker) {
	b.clock.AfterFunc(w.wait, func() { b.look(at, w) })
}

// look is called again and again until no Job is refused because of the blocker any more.
func (b *blockers) look(at blockedAt, w *watchedBlocker) {
	is := b.due(at, w)
	if is == nil {
		return
	}
	var jobs []types.NamespacedName
	blocks, err := b.ask(at.worker, is)
	b.mu.Lock()
	switch {
	case apierrors.IsForbidden(err):
		w.until = b.clock.Now() // it can't be seen
	case err == nil && !blocks && w.blocker == is:
		jobs = slices.Collect(maps.Keys(w.jobs))
		clear(w.jobs)
	}
	w.wait = min(2*w.wait, maxLookWait)
	b.lookLater(at, w)
	b.mu.Unlock()
	if len(jobs) > 0 {
		b.gone(at, jobs)
	}
}

// due returns the blocker if it's to be looked at now, or sees to it that it is later.
func (b *blockers) due(at blockedAt, w *watchedBlocker) *blocker {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.clock.Now().Before(w.until) {
		delete(b.watched, at)
		return nil
	}
	if b.paces[at.worker] == nil {
		b.paces[at.worker] = flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(looksPerSecond, looksPerSecond, b.clock)
	}
	if len(w.jobs) == 0 || !b.paces[at.worker].TryAccept() {
		b.lookLater(at, w)
		return nil
	}
	return w.blocker
}

func (b *blockers) ask(worker string, is *blocker) (blocks bool, err error) {
	reader := b.reader(worker)
	if reader == nil {
		return true, nil
	}
	return is.isIn(context.Background(), reader) // its client bounds the time
}

// forget drops what is kept for a worker that was removed. Its blockers go with the next look.
func (b *blockers) forget(worker string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.paces, worker)
	for at, w := range b.watched {
		if at.worker == worker {
			w.until = time.Time{}
		}
	}
}

// unblock has Jobs tried again in a worker that refused them because of what is gone.
func (r *Reconciler) unblock(at blockedAt, jobs []types.NamespacedName) {
	for _, key := range jobs {
		r.store.unblock(key, at)
	}
	r.enqueueRelated(jobs...)
}

func (s *store) unblock(key types.NamespacedName, at blockedAt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.records[key]; r != nil && r.passedOver[at.worker].blocker == at {
		r.updateLocked(func(m *memory) { delete(m.passedOver, at.worker) })
	}
}

func clientOf(workers workers) func(string) client.Reader {
	return func(name string) client.Reader {
		if w, ok := workers.get(name); ok {
			return w.Client()
		}
		return nil
	}
}
