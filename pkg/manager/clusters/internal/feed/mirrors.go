package feed

import (
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters/internal/link"
	"github.com/jobferry/jobferry/pkg/manager/packed"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// mirrorCallbacks are called on events of a worker's mirrors. They must not block.
type mirrorCallbacks struct {
	changed func(MirrorChange)
	// started: the Job controller has started one.
	started func()
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
	store cache.Indexer
}

func newMirrors(l *link.Link, origin v1alpha1.Origin, intake *intake, callbacks mirrorCallbacks) (*mirrors, error) {
	api, err := l.Watcher(batchv1.SchemeGroupVersion)
	if err != nil {
		return nil, err
	}
	selector := origin.Selector().String()
	m := &mirrors{}
	m.informer = newInformer(informerSource{
		link: l, api: api, resource: "jobs",
		narrow: func(o *metav1.ListOptions) { o.LabelSelector = selector },
		intake: intake,
		sink:   m.sink(mirrorHandler(callbacks)),
	}, l.Options().Wake)
	return m, nil
}

func (m *mirrors) sink(handler cache.ResourceEventHandler) sink {
	return func(from cache.ListerWatcher, intake *intake, onEnd cache.WatchErrorHandlerWithContext) (runner, synced) {
		shared := cache.NewSharedIndexInformerWithOptions(from, intake.example, cache.SharedIndexInformerOptions{})
		handled, err := shared.AddEventHandler(handler)
		// None of them fails before the informer has been started.
		utilruntime.Must(errors.Join(err, shared.SetTransform(packed.Pack), shared.SetWatchErrorHandlerWithContext(onEnd)))
		m.store = shared.GetIndexer()
		return shared, handled
	}
}

func mirrorHandler(callbacks mirrorCallbacks) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			callbacks.changed(MirrorChange{Key: keyOf(object), Exists: true})
		},
		UpdateFunc: func(before, object any) {
			packed.Replaced(before, object)
			if packed.Same(before, object) {
				return
			}
			if !hasStarted(before) && hasStarted(object) {
				callbacks.started()
			}
			callbacks.changed(MirrorChange{Key: keyOf(object), Exists: true, IsProgress: func() bool { return isProgress(before, object) }})
		},
		DeleteFunc: func(object any) {
			packed.Replaced(object, nil)
			callbacks.changed(MirrorChange{Key: keyOf(object), Last: lastOf(object)})
		},
	}
}

// lastOf is the state of a mirror that the event of its deletion tells. The worker may remove a
// mirror before the hub has looked at its end. One that wasn't being deleted may be there still,
// without its marks. Nil: it was being deleted, and hadn't ended by itself.
func lastOf(object any) *batchv1.Job {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj // an end stays one
	}
	held, ok := object.(*packed.Job)
	if !ok {
		return nil
	}
	job := held.Shared()
	if job.DeletionTimestamp != nil && !mirror.EndedByItself(job) {
		return nil
	}
	return job
}

func isProgress(before, after any) bool {
	was, ok := before.(*packed.Job)
	is, same := after.(*packed.Job)
	return ok && same && !is.Facts().Finished && mirror.IsProgress(was.Shared(), is.Shared())
}

func hasStarted(object any) bool {
	job, ok := object.(*packed.Job)
	return ok && job.Facts().Started
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

// slimMirror holds nothing of a Job that doesn't say which hub Job it stands for: it's no mirror,
// whatever its label says.
func slimMirror(o object) (object, bool) {
	job, ok := o.(*batchv1.Job)
	if !ok || mirror.HubUID(job) == "" {
		return o, false
	}
	mirror.SlimMirror(job)
	return job, true
}

func keyOf(object any) types.NamespacedName {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		namespace, name, _ := cache.SplitMetaNamespaceKey(tombstone.Key)
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	job, ok := object.(*packed.Job)
	if !ok {
		return types.NamespacedName{}
	}
	return job.Facts().Key
}
