package feed

import (
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/jobferry/jobferry/pkg/manager/packed"
	"github.com/jobferry/jobferry/pkg/manager/workerpanic"
	"github.com/jobferry/jobferry/pkg/util/digest"
	"github.com/jobferry/jobferry/pkg/util/objectnames"
)

// intake decides what an informer passes on. It slims each object, and counts what is held: a
// worker can't fill the manager's memory. No object is held whose names an API server wouldn't
// store.
type intake struct {
	// example has the type of the objects; others are refused.
	example object
	// slim removes from an object what isn't read; false: it isn't to be held at all.
	slim func(object) (slim object, hold bool)
	// worker is whose objects these are.
	worker string
	// malformed is called for an object with names that no API server stores, which isn't held; nil:
	// nobody counts them.
	malformed func()
	// pack makes what the sink gets of an object that is held; nil: that is the object.
	pack func(object) (runtime.Object, error)
	// lighten removes more, when half of the bytes are taken; nil: there is no more.
	lighten func(object)
	// size of an object in memory; nil: its size in protobuf, and a bit.
	size func(object) int64
	// limit is what may be held, in objects and bytes.
	limit func() (objects int, bytes int64)
	// excess makes the error for an object that is over the limit.
	excess func() error
	// backlog bounds the events of the watch that the sink hasn't taken.
	backlog backlog

	mu    sync.Mutex
	sizes map[digest.Digest]heldObject
	bytes int64
	// former is how many objects the cache holds until it's replaced.
	former int
	// pending: what was cleared isn't complete yet.
	pending bool
	// read counts all objects that were taken in, also those that aren't held.
	read int64
}

// newIntake makes an intake with fixed limits. The message for what is over them is a format with
// both, in objects and MiB.
func newIntake[T object](
	example T, slim func(T) (T, bool), size func(object) int64, most int, bytes int64, over string,
) *intake {
	return &intake{
		example: example,
		slim: func(o object) (object, bool) {
			typed, is := o.(T)
			if !is {
				return o, false
			}
			return slim(typed)
		},
		size:   size,
		limit:  func() (int, int64) { return most, bytes },
		excess: func() error { return &excessError{fmt.Sprintf(over, most, bytes>>20)} },
	}
}

// heldObject is what is known of an object that the cache holds.
type heldObject struct {
	uid  digest.Digest
	size int64
}

// structBytes is about what an object takes beside what its size in protobuf counts.
const structBytes = 1 << 10

// object is what the API types have in common here.
type object interface {
	runtime.Object
	metav1.Object
	Size() int
	Marshal() ([]byte, error)
}

// clear begins anew: the cache will be replaced by what is taken from now on.
func (i *intake) clear() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.former, i.sizes, i.bytes = max(i.former, len(i.sizes)), map[digest.Digest]heldObject{}, 0
	i.pending = true
}

// complete ends what clear began: all objects that there are have been taken.
func (i *intake) complete() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.former, i.pending = 0, false
}

// progress reports whether objects of a list are still to come, and how many were read in all.
func (i *intake) progress() (pending bool, read int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.pending, i.read
}

// held counts the objects.
func (i *intake) held() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return max(i.former, len(i.sizes))
}

// take returns an object as the cache is to hold it; nil: it isn't to be held.
func (i *intake) take(from runtime.Object) (object, error) {
	given, ok := i.typed(from)
	if !ok {
		return nil, fmt.Errorf("a %T where a %T was asked for", from, i.example)
	}
	o, hold := i.slimmed(given)
	if hold && !objectnames.Valid(o) {
		if hold = false; i.malformed != nil {
			i.malformed()
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.read++
	if !hold {
		return nil, nil
	}
	key, uid := digest.Of(nameOf(o)), digest.Of(o.GetUID())
	objects, bytes := i.limit()
	before, known := i.sizes[key]
	if known && before.uid != uid {
		return nil, otherUID(nameOf(o))
	}
	others, size := i.bytes-before.size, i.sizeOf(o)
	if i.lighten != nil && others+size > bytes/2 {
		i.lighten(o)
		size = i.sizeOf(o)
	}
	if others+size > bytes || !known && len(i.sizes) >= objects {
		return nil, i.excess()
	}
	i.sizes[key], i.bytes = heldObject{uid, size}, others+size
	return o, nil
}

// slimmed is what slim makes of an object. One that makes it panic isn't held, and only its names
// are passed on.
func (i *intake) slimmed(given object) (o object, hold bool) {
	if workerpanic.Contain(i.worker, func() { o, hold = i.slim(given) }) {
		return o, hold
	}
	names, _ := i.typed(i.example.DeepCopyObject()) // an empty one
	names.SetNamespace(given.GetNamespace())
	names.SetName(given.GetName())
	names.SetUID(given.GetUID())
	names.SetResourceVersion(given.GetResourceVersion())
	return names, false
}

// leave counts an object no more, and reports whether it was held.
func (i *intake) leave(o object) (held bool, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	key := digest.Of(nameOf(o))
	before, held := i.sizes[key]
	if held && before.uid != digest.Of(o.GetUID()) {
		return false, otherUID(nameOf(o))
	}
	i.bytes -= before.size
	delete(i.sizes, key)
	return held, nil
}

// otherUID is the error for an object whose former namesake wasn't deleted. No API server sends
// that. Who keeps objects by their UIDs would keep the former one.
func otherUID(name types.NamespacedName) error {
	return fmt.Errorf("the worker sends %.300q with another UID before it was deleted", name)
}

// pass makes of an event of the watch what the cache is to see; false: nothing.
func (i *intake) pass(event watch.Event) (passed watch.Event, pass bool, err error) {
	if of, is := event.Object.(metav1.Object); is {
		if err := checkVersion(of.GetResourceVersion()); err != nil {
			return event, false, err
		}
	}
	if event.Type == watch.Bookmark {
		if endsInitial(event) {
			i.complete()
		}
		return event, true, nil
	}
	given, ok := i.typed(event.Object)
	if !ok {
		return event, false, nil
	}
	if event.Type != watch.Deleted {
		o, err := i.take(given)
		if err != nil {
			return event, false, err
		}
		if o != nil {
			event.Object, err = i.packed(o)
			return event, err == nil, err
		}
		event.Type = watch.Deleted // it isn't one of ours any more
	}
	slim, _ := i.slimmed(given)
	pass, err = i.leave(slim)
	switch {
	case err != nil && !objectnames.Valid(slim):
		return event, false, nil // as if it hadn't come
	case err != nil || !pass:
		return event, false, err
	}
	event.Object, err = i.packed(slim)
	return event, err == nil, err
}

// packed is an object as the sink gets it.
func (i *intake) packed(o object) (runtime.Object, error) {
	if i.pack == nil {
		return o, nil
	}
	return i.pack(o)
}

// endsInitial reports whether all objects that there were at the begin of the watch have come.
func endsInitial(event watch.Event) bool {
	o, ok := event.Object.(metav1.Object)
	return ok && event.Type == watch.Bookmark && o.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}

func (i *intake) typed(from runtime.Object) (object, bool) {
	o, ok := from.(object)
	return o, ok && reflect.TypeOf(from) == reflect.TypeOf(i.example)
}

func nameOf(o object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

func (i *intake) sizeOf(o object) int64 {
	if i.size != nil {
		return i.size(o)
	}
	return structBytes + int64(o.Size())
}

// queue adds an event to the backlog, and returns its size there. Those of a list aren't added: the
// sink gets them together. False: the watch has ended while there was no room.
func (i *intake) queue(event watch.Event, done <-chan struct{}) (size int64, ok bool) {
	if event.Type == watch.Bookmark || event.Type == watch.Error {
		return 0, true
	}
	if pending, _ := i.progress(); pending {
		return 0, true
	}
	size = i.waiting(event.Object)
	return size, i.backlog.add(size, done)
}

// taken takes what an event has out of the backlog.
func (i *intake) taken(o any) { i.backlog.remove(i.waiting(o)) }

// waiting is the size in the backlog of what an event has; zero: it isn't there.
func (i *intake) waiting(o any) int64 {
	switch o := o.(type) {
	case *packed.Job:
		return structBytes + o.Bytes()
	case object:
		return i.sizeOf(o)
	default:
		return 0
	}
}

// takenWatch is a watch whose events go through an intake.
type takenWatch struct {
	from   watch.Interface
	intake *intake
	of     watcher
	result chan watch.Event
	done   chan struct{}
	stop   sync.Once
}

// watcher is told how a watch goes.
type watcher interface {
	// begins returns when a watch that begins now has succeeded, and when it has settled.
	begins() (succeeds, settles <-chan time.Time)
	succeeded()
	settled()
	// failed may wait until done before the watch ends.
	failed(err error, done <-chan struct{})
}

// watch takes the objects of a watch. What can't be taken ends it, as an ERROR event does.
func (i *intake) watch(from watch.Interface, of watcher) watch.Interface {
	w := &takenWatch{from: from, intake: i, of: of, result: make(chan watch.Event), done: make(chan struct{})}
	go w.run()
	return w
}

// Stop ends the watch.
func (w *takenWatch) Stop() {
	w.stop.Do(func() { close(w.done) })
	w.from.Stop()
}

// ResultChan has the events.
func (w *takenWatch) ResultChan() <-chan watch.Event { return w.result }

func (w *takenWatch) run() {
	defer close(w.result)
	defer w.from.Stop()
	for succeeds, settles := w.of.begins(); ; {
		select {
		case <-succeeds:
			w.of.succeeded()
		case <-settles:
			w.of.settled()
		case event, open := <-w.from.ResultChan():
			if !open || !w.pass(event) {
				return
			}
		}
	}
}

// pass passes an event on; false: the watch has ended.
func (w *takenWatch) pass(event watch.Event) bool {
	passed, pass, err := w.taken(event)
	if err != nil {
		w.of.failed(err, w.done)
	}
	if !pass {
		// That it's too busy, a reflector isn't to know: see informer.open.
		return err == nil
	}
	queued, ok := w.intake.queue(passed, w.done)
	if !ok {
		return false
	}
	select {
	case w.result <- passed:
		return err == nil
	case <-w.done:
		w.intake.backlog.remove(queued)
		return false
	}
}

// taken makes of an event what is passed on, and returns the error that ends the watch.
func (w *takenWatch) taken(event watch.Event) (passed watch.Event, pass bool, err error) {
	if event.Type == watch.Error {
		err = apierrors.FromObject(event.Object)
		return event, !apierrors.IsTooManyRequests(err), err
	}
	if passed, pass, err = w.intake.pass(event); err != nil {
		passed, pass = watch.Event{Type: watch.Error, Object: &metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInsufficientStorage, Message: err.Error(),
		}}, true
	}
	return passed, pass, err
}
