package copier

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
)

// maxTries bounds how often one object is looked at again because somebody else wrote it meanwhile.
const maxTries = 5

// errContended: somebody else keeps writing the object.
var errContended = errors.New("it keeps being changed, or is being deleted")

// Follower watches kinds of sources.
type Follower interface {
	Follow(ctx context.Context, kind carry.Kind) error
}

// Copier brings the objects that Jobs refer to into their workers.
type Copier struct {
	// Hub reads sources, past any cache.
	Hub client.Reader
	// Origin is the id of the hub.
	Origin v1alpha1.Origin
	// Registers says whether a Secret registers a worker; it never leaves the hub.
	Registers func(*corev1.Secret) bool
	// Book is where what has been carried is entered.
	Book *Book
	// Watch is told which kinds are needed.
	Watch Follower
}

// Worker is a worker cluster as far as a Copier needs it.
type Worker interface {
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

// WorkerError is an answer of the worker's API server about one object. Other errors of Carry are
// the hub's.
type WorkerError struct {
	Ref carry.Ref
	Err error
}

func (e *WorkerError) Error() string { return e.Ref.String() + ": " + e.Err.Error() }
func (e *WorkerError) Unwrap() error { return e.Err }

// Carry brings all that a hub Job refers to, of the kinds that its mirror is marked with, into a
// worker, and enters that in the book. It returns what it has written, also if it fails in the end;
// a further call goes on.
func (c *Copier) Carry(ctx context.Context, hub, m *batchv1.Job, worker Worker, now time.Time) ([]Write, error) {
	t := &trip{
		Copier: c, worker: worker.Client(), job: types.NamespacedName{Namespace: hub.Namespace, Name: hub.Name},
		rules:  carry.Rules{Origin: c.Origin, Mirror: m, Registers: c.Registers, Spent: spentIn(worker, m.Namespace)},
		record: Record{Mirror: m.UID, Seen: map[Source]string{}, At: now},
	}
	kinds := carry.Marked(m)
	queue := carry.Select(carry.References(&hub.Spec.Template), kinds)
	for len(queue) > 0 {
		ref := queue[0]
		queue = queue[1:]
		source, err := t.bring(ctx, ref)
		if err != nil {
			return t.writes, err
		}
		if account, ok := source.(*corev1.ServiceAccount); ok {
			queue = append(queue, t.unseen(carry.Select(carry.PullSecrets(account), kinds), queue)...)
		}
	}
	c.Book.Enter(t.job, t.record)
	return t.writes, nil
}

// spentIn says of owners of a namespace's objects whether they're mirrors that have ended. Of those
// that are gone, the worker's garbage collector takes care.
func spentIn(worker Worker, namespace string) func(metav1.OwnerReference) bool {
	return func(owner metav1.OwnerReference) bool {
		m, ok := worker.Mirror(types.NamespacedName{Namespace: namespace, Name: owner.Name})
		return ok && m.UID == owner.UID && mirror.Finished(m)
	}
}

// trip is one run of Carry.
type trip struct {
	*Copier
	worker client.Client
	job    types.NamespacedName
	rules  carry.Rules
	record Record
	writes []Write
}

// unseen returns the references that are neither done nor in the queue.
func (t *trip) unseen(refs, queue []carry.Ref) []carry.Ref {
	return slices.DeleteFunc(refs, func(r carry.Ref) bool {
		_, done := t.record.Seen[t.sourceOf(r)]
		return done || slices.ContainsFunc(queue, func(q carry.Ref) bool { return q.Kind == r.Kind && q.Name == r.Name })
	})
}

func (t *trip) sourceOf(ref carry.Ref) Source {
	return Source{ref.Kind, types.NamespacedName{Namespace: t.job.Namespace, Name: ref.Name}}
}

// bring sees to one object, and returns its source; nil: there is none.
func (t *trip) bring(ctx context.Context, ref carry.Ref) (carry.Object, error) {
	if err := t.Watch.Follow(ctx, ref.Kind); err != nil {
		return nil, err
	}
	for range maxTries {
		sight, err := t.look(ctx, ref)
		if err != nil {
			return nil, err
		}
		decision := carry.Decide(sight, t.rules)
		err = t.write(ctx, decision, sight.Existing)
		if isOvertaken(err) {
			continue
		}
		if err != nil {
			return nil, &WorkerError{ref, err}
		}
		t.note(ref, decision)
		return sight.Source, nil
	}
	return nil, &WorkerError{ref, errContended}
}

// isOvertaken says whether a write failed because the object wasn't as it was seen.
func isOvertaken(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}

func (t *trip) note(ref carry.Ref, decision carry.Decision) {
	if decision.Do != carry.Leave {
		t.writes = append(t.writes, Write{ref.Kind, decision.Do})
	}
	if decision.Blocked != "" {
		t.record.Blocked = append(t.record.Blocked, decision.Blocked)
	}
	if decision.Note != "" {
		t.record.Notes = append(t.record.Notes, decision.Note)
	}
}

// look reads the object in the worker, and then its source.
func (t *trip) look(ctx context.Context, ref carry.Ref) (carry.Sight, error) {
	sight, source := carry.Sight{Ref: ref, Namespace: t.job.Namespace}, t.sourceOf(ref)
	known := t.Book.Follow(t.job, source)
	var err error
	if sight.Existing, err = get(ctx, t.worker, source); err != nil {
		return sight, &WorkerError{ref, err}
	}
	sight.Source, err = get(ctx, t.Hub, source)
	switch {
	case apierrors.IsForbidden(err):
		sight.Unreadable = err.Error()
	case err != nil:
		return sight, fmt.Errorf("%s on the hub: %w", ref, err)
	}
	t.record.Seen[source] = known
	if sight.Source != nil {
		t.record.Seen[source] = sight.Source.GetResourceVersion()
	}
	return sight, nil
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

func (t *trip) write(ctx context.Context, d carry.Decision, existing carry.Object) error {
	switch d.Do {
	case carry.Create:
		return t.worker.Create(ctx, d.Object)
	case carry.Update:
		return t.worker.Update(ctx, d.Object)
	case carry.AddOwner:
		return t.worker.Patch(ctx, d.Object, client.RawPatch(types.StrategicMergePatchType, d.Patch))
	case carry.Recreate:
		uid, version := existing.GetUID(), existing.GetResourceVersion()
		err := t.worker.Delete(ctx, existing, client.Preconditions{UID: &uid, ResourceVersion: &version})
		if err != nil {
			return err
		}
		return t.worker.Create(ctx, d.Object)
	case carry.Await:
		return errContended
	default:
		return nil
	}
}
