package copier

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/carry"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/util/decoded"
	"github.com/jobferry/jobferry/pkg/util/pages"
)

// maxTries bounds the attempts for one object that another writer changes at the same time.
const maxTries = 5

// errContended: another writer keeps changing the object, and errOvertaken: it has once.
var (
	errContended = errors.New("it keeps being changed, or is being deleted")
	errOvertaken = errors.New("it has been changed")
)

// Watcher watches kinds of sources.
type Watcher interface {
	Add(ctx context.Context, kind carry.Kind) error
}

// Copier copies the objects that Jobs refer to into their workers.
type Copier struct {
	// Hub reads sources, past any cache.
	Hub client.Reader
	// Origin is the id of the hub.
	Origin v1alpha1.Origin
	// HubKeys are those of labels that stay on the hub.
	HubKeys mirror.HubKeys
	// AccountAnnotations are those of ServiceAccounts that are copied.
	AccountAnnotations mirror.Keys
	// Registers reports whether a Secret registers a worker. Such a Secret is never copied.
	Registers func(*corev1.Secret) bool
	// Tracker records what was copied.
	Tracker *Tracker
	// Watch watches the kinds that are needed.
	Watch Watcher
}

// Memory is what large objects share.
type Memory interface {
	// Reserve takes some of it, until it's released with what the objects really took: who has used
	// much gets none for some time. It fails if there is none, and doesn't wait.
	Reserve(bytes int64) (release func(used int64), err error)
}

// smallBytes bounds the answers to reads for which nothing is reserved. A larger object is read
// with largeBytes: it and its copy, and what is written of it.
const (
	smallBytes = 64 << 10
	largeBytes = 32 << 20
)

// Worker is what a Copier needs of a worker cluster.
type Worker interface {
	Name() string
	// Client reads and writes there.
	Client() client.Client
	// Mirror gets a mirror from the cache.
	Mirror(types.NamespacedName) (*batchv1.Job, bool)
}

// Write is a write to a worker that succeeded.
type Write struct {
	Kind      carry.Kind
	Operation carry.Operation
}

// WorkerError is an error of a request to the worker about one object. Other errors of Carry are
// the hub's.
type WorkerError struct {
	Ref carry.Ref
	Err error
}

func (e *WorkerError) Error() string { return e.Ref.String() + ": " + e.Err.Error() }
func (e *WorkerError) Unwrap() error { return e.Err }

// Carry copies all that a hub Job refers to, of some kinds, into the worker of its mirror, and
// records it. Of what it did for this mirror before, it looks at what has changed or was missing;
// if that is nothing, at all. It returns its writes, also if it fails in the end; a further call
// continues.
func (c *Copier) Carry(
	ctx context.Context, hub, m *batchv1.Job, kinds []carry.Kind, worker Worker, memory Memory, now time.Time,
) ([]Write, error) {
	r := &run{
		Copier: c, memory: memory, worker: worker.Client(), place: Place{client.ObjectKeyFromObject(hub), worker.Name()},
		rules: carry.Rules{
			Origin: c.Origin, HubKeys: c.HubKeys, AccountAnnotations: c.AccountAnnotations,
			Mirror: m, Registers: c.Registers, Finished: finishedIn(worker, m.Namespace),
		},
	}
	r.copied = Copied{Mirror: m.UID, Kinds: kinds, Seen: map[Source]string{}, said: map[Source]remark{}, At: now}
	all := carry.Select(carry.References(&hub.Spec.Template), kinds)
	r.queue = r.changed(all)
	admitted := r.admit(r.queue, len(all))
	for admitted && len(r.queue) > 0 {
		ref := r.queue[0]
		r.queue = r.queue[1:]
		var err error
		if admitted, err = r.copyRef(ctx, ref); err != nil {
			return r.writes, err
		}
	}
	if admitted {
		r.Tracker.Record(r.place, r.copied)
	}
	return r.writes, nil
}

// finishedIn returns a function that reports whether an owner is a mirror that has ended. The
// worker's garbage collector removes owners that are gone. A mirror is read once: that may take
// some time, and many owners may have its name.
func finishedIn(worker Worker, namespace string) func(metav1.OwnerReference) bool {
	ended := map[string]types.UID{}
	return func(owner metav1.OwnerReference) bool {
		uid, known := ended[owner.Name]
		if !known {
			if m, ok := worker.Mirror(types.NamespacedName{Namespace: namespace, Name: owner.Name}); ok && mirror.Finished(m) {
				uid = m.UID
			}
			ended[owner.Name] = uid
		}
		return uid != "" && uid == owner.UID
	}
}

// run is one call of Carry.
type run struct {
	*Copier
	memory Memory
	worker client.Client
	place  Place
	rules  carry.Rules
	copied Copied
	queue  []carry.Ref
	writes []Write
}

// copyRef brings one object up to date, unless it's a ServiceAccount whose imagePullSecrets can't
// all be carried along.
func (r *run) copyRef(ctx context.Context, ref carry.Ref) (admitted bool, err error) {
	if err := r.Watch.Add(ctx, ref.Kind); err != nil {
		return false, err
	}
	for range maxTries {
		if admitted, err = r.tryRef(ctx, ref); !errors.Is(err, errOvertaken) {
			return admitted, err
		}
	}
	return false, &WorkerError{ref, errContended}
}

// tryRef is copyRef once. It returns errOvertaken if another writer has changed the object.
func (r *run) tryRef(ctx context.Context, ref carry.Ref) (admitted bool, err error) {
	snapshot, release, err := r.gather(ctx, ref)
	defer release()
	if err != nil {
		return false, err
	}
	if account, is := snapshot.Source.(*corev1.ServiceAccount); is && !r.admitPullSecrets(account) {
		return false, nil
	}
	decision := carry.Decide(snapshot, r.rules)
	switch err := r.write(ctx, decision, snapshot.Existing); {
	case isOvertaken(err):
		return false, errOvertaken
	case err != nil:
		return false, &WorkerError{ref, err}
	}
	r.note(ref, decision)
	return true, nil
}

// isOvertaken reports whether a write failed because the object has changed since it was read.
func isOvertaken(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}

func (r *run) note(ref carry.Ref, decision carry.Decision) {
	if decision.Do != carry.Leave {
		r.writes = append(r.writes, Write{ref.Kind, decision.Do})
	}
	if decision.Blocked != "" || decision.Note != "" {
		r.copied.said[r.sourceOf(ref)] = remarkOf(ref, decision.Blocked, decision.Note)
	}
}

// gather reads the object in the worker and its source, with memory if one of them is large. That
// is to be released when nothing of the snapshot is used any more.
func (r *run) gather(ctx context.Context, ref carry.Ref) (snapshot carry.Snapshot, release func(), err error) {
	snapshot, err = r.read(pages.Within(ctx, smallBytes), ref)
	if !errors.Is(err, pages.ErrTooLarge) {
		return snapshot, func() {}, err
	}
	free, err := r.memory.Reserve(largeBytes)
	if err != nil {
		return snapshot, func() {}, fmt.Errorf("%s: %w", ref, err)
	}
	snapshot, err = r.read(ctx, ref)
	snapshot.Size = sizeOf(snapshot.Source)
	used := snapshot.Size + sizeOf(snapshot.Existing)
	return snapshot, func() { free(used) }, err
}

func sizeOf(object carry.Object) int64 {
	if object == nil {
		return 0
	}
	return decoded.Size(object)
}

// read reads the object in the worker, and then its source.
func (r *run) read(ctx context.Context, ref carry.Ref) (carry.Snapshot, error) {
	snapshot, source := carry.Snapshot{Ref: ref, Namespace: r.place.Namespace}, r.sourceOf(ref)
	known := r.Tracker.version(source)
	var err error
	if snapshot.Existing, err = get(ctx, r.worker, source); err != nil {
		return snapshot, &WorkerError{ref, err}
	}
	snapshot.Source, err = get(ctx, r.Hub, source)
	switch {
	case apierrors.IsForbidden(err):
		snapshot.Unreadable = err.Error()
	case err != nil:
		return snapshot, fmt.Errorf("%s on the hub: %w", ref, err)
	}
	r.copied.Seen[source] = known
	if snapshot.Source != nil {
		r.copied.Seen[source] = snapshot.Source.GetResourceVersion()
	}
	return snapshot, nil
}

// get reads an object; nil: there is none.
func get(ctx context.Context, from client.Reader, source Source) (carry.Object, error) {
	object := carry.New(source.Kind)
	switch err := from.Get(ctx, source.NamespacedName, object); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return object, nil
}

func (r *run) write(ctx context.Context, d carry.Decision, existing carry.Object) error {
	switch d.Do {
	case carry.Create:
		return r.worker.Create(ctx, d.Object)
	case carry.Update:
		return r.worker.Update(ctx, d.Object)
	case carry.AddOwner:
		return r.worker.Patch(ctx, d.Object, client.RawPatch(types.StrategicMergePatchType, d.Patch))
	case carry.Recreate:
		uid, version := existing.GetUID(), existing.GetResourceVersion()
		err := r.worker.Delete(ctx, existing, client.Preconditions{UID: &uid, ResourceVersion: &version})
		if err != nil {
			return err
		}
		return r.worker.Create(ctx, d.Object)
	case carry.Await:
		return errContended
	default:
		return nil
	}
}
