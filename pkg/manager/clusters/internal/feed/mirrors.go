package feed

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters/internal/link"
	"github.com/jobferry/jobferry/pkg/manager/packed"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// mirrorCallbacks are called on events of a worker's mirrors. They must not block.
type mirrorCallbacks struct {
	changed func(MirrorChange)
	// controllerSeen: the Job controller has started or ended one.
	controllerSeen func()
}

// MirrorChange is an event of a mirror.
type MirrorChange struct {
	Key types.NamespacedName
	// Exists: the worker has the mirror.
	Exists bool
	// Last is the last state of a mirror that is gone, if it had ended, or wasn't being deleted. It
	// must not be modified.
	Last *batchv1.Job
	// IsProgress compares with the state before, see mirror.IsProgress; nil: it isn't.
	IsProgress func() bool
}

// mirrors are the Jobs of this origin in a worker.
type mirrors struct {
	*informer
	*mirrorStore
}

func newMirrors(l *link.Link, origin v1alpha1.Origin, intake *intake, callbacks mirrorCallbacks) (*mirrors, error) {
	api, err := l.Watcher(batchv1.SchemeGroupVersion)
	if err != nil {
		return nil, err
	}
	selector, kept := origin.Selector().String(), newMirrorStore(callbacks)
	return &mirrors{newInformer(informerSource{
		link: l, api: api, resource: "jobs",
		narrow: func(o *metav1.ListOptions) { o.LabelSelector = selector },
		intake: intake, sink: mirrorsTo(kept).sink,
	}, l.Options().Wake), kept}, nil
}

// has reports whether there is a mirror, as far as is known: until all have been listed, there may
// be any.
func (m *mirrors) has(key types.NamespacedName) bool { return !m.synced() || m.get(key) != nil }

func mirrorsTo(kept *mirrorStore) fanOut[types.NamespacedName, *packed.Job] {
	key := func(job *packed.Job) types.NamespacedName { return job.Facts().Key }
	return fanOut[types.NamespacedName, *packed.Job]{key, []store[types.NamespacedName, *packed.Job]{kept}, func() {}}
}

// mirrorStore holds mirrors, and tells of their changes when it holds what they are now. Any
// goroutine may read it.
type mirrorStore struct {
	tell mirrorCallbacks

	mu   sync.RWMutex
	jobs map[types.NamespacedName]*packed.Job
}

func newMirrorStore(tell mirrorCallbacks) *mirrorStore {
	return &mirrorStore{tell: tell, jobs: map[types.NamespacedName]*packed.Job{}}
}

// Set implements store.
func (s *mirrorStore) Set(job *packed.Job) {
	key := job.Facts().Key
	before := s.put(key, job)
	switch {
	case before == nil:
		s.tell.changed(MirrorChange{Key: key, Exists: true})
		return
	case packed.Same(before, job):
		return
	case before.Facts().Started != job.Facts().Started, before.Facts().Finished != job.Facts().Finished:
		s.tell.controllerSeen()
	}
	s.tell.changed(MirrorChange{Key: key, Exists: true, IsProgress: func() bool { return isProgress(before, job) }})
}

// Remove implements store: the last state is the one that was held.
func (s *mirrorStore) Remove(key types.NamespacedName) {
	if last := s.put(key, nil); last != nil {
		s.tell.changed(MirrorChange{Key: key, Last: lastOf(last)}) // an end stays one
	}
}

// Delete implements deleter.
func (s *mirrorStore) Delete(job *packed.Job) {
	key := job.Facts().Key
	s.put(key, nil)
	packed.Replaced(job, nil)
	s.tell.changed(MirrorChange{Key: key, Last: lastOf(job)})
}

// Keys implements store.
func (s *mirrorStore) Keys() []types.NamespacedName {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Keys(s.jobs))
}

// put holds a mirror, or none of a key, and returns the one that it held.
func (s *mirrorStore) put(key types.NamespacedName, job *packed.Job) (before *packed.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before = s.jobs[key]
	if job == nil {
		delete(s.jobs, key)
	} else {
		s.jobs[key] = job // with a key that shares its memory
	}
	if before != nil {
		packed.Replaced(before, job)
	}
	return before
}

// get returns a mirror; nil: there is none.
func (s *mirrorStore) get(key types.NamespacedName) *packed.Job {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.jobs[key]
}

// facts are those of all mirrors, in no order.
func (s *mirrorStore) facts() []packed.Facts {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]packed.Facts, 0, len(s.jobs))
	for _, job := range s.jobs {
		all = append(all, job.Facts())
	}
	return all
}

// count is how many there are.
func (s *mirrorStore) count() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.jobs)
}

// lastOf is the state of a mirror that is gone. The worker may remove a mirror before the hub has
// looked at its end. One that wasn't being deleted may be there still, without its marks. Nil: it
// was being deleted, and hadn't ended by itself.
func lastOf(last *packed.Job) *batchv1.Job {
	job := last.Shared()
	if job.DeletionTimestamp != nil && !mirror.EndedByItself(job) {
		return nil
	}
	return job
}

func isProgress(before, after *packed.Job) bool {
	return !after.Facts().Finished && mirror.IsProgress(before.Shared(), after.Shared())
}

// DefaultMaxMirrors is the default of spec.maxMirrors.
const DefaultMaxMirrors = 20_000

// mirrorBytes is what the manager holds of one worker's mirrors for each that it may have, by their
// size in protobuf, and minMirrorBytes what it holds at least. From half of it on, they are held
// without their Pod templates.
const (
	mirrorBytes    = 5 << 10
	minMirrorBytes = 32 << 20
)

// mirrorIntake holds a quarter more mirrors than the worker may have: Jobs that were placed before
// it was full.
func mirrorIntake(most func() int) *intake {
	limit := func() (objects int, bytes int64) {
		most := most()
		return most + most/4 + 1, max(int64(most)*mirrorBytes, minMirrorBytes)
	}
	return &intake{
		example: &batchv1.Job{},
		slim:    slimMirror,
		pack:    packMirror,
		lighten: func(o object) {
			if job, ok := o.(*batchv1.Job); ok {
				mirror.LightenMirror(job)
			}
		},
		limit: limit,
		excess: func() error {
			objects, bytes := limit()
			return &link.BoundError{Reason: v1alpha1.ReasonTooManyMirrors, Message: fmt.Sprintf(
				"the worker has more than %d Jobs with this hub's labels, or %d MiB of them, though spec.maxMirrors is %d: "+
					"delete those that aren't this hub's, keep others from creating them, or raise spec.maxMirrors",
				objects, bytes>>20, most())}
		},
	}
}

// slimMirror holds nothing of a Job that doesn't say which hub Job it stands for, or of which too
// much would have to be held to know it: it's no mirror, whatever its label says.
func slimMirror(o object) (object, bool) {
	job, ok := o.(*batchv1.Job)
	if ok {
		mirror.SlimMirror(job)
	}
	return o, ok && mirror.HubUID(job) != ""
}

func packMirror(o object) (runtime.Object, error) {
	job, ok := o.(*batchv1.Job)
	if !ok {
		return o, nil
	}
	return packed.New(job) //nolint:wrapcheck // it names the Job
}
