package events

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/reference"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/text"
)

const (
	// maxWaitingBytes bounds the memory when the hub is slow; further events are dropped. An event
	// takes one to two KiB.
	maxWaitingBytes = 16 << 20
	// eventTimeout is for one write.
	eventTimeout = 10 * time.Second
	// late is how long an event waits before more writers help, up to so many in all. A new leader
	// tells again what each Job waits for, and may itself end before the last of it is written.
	late       = 2 * time.Second
	maxWriters = 4
	// lastEvents is how long events are still written when the manager has stopped. The next leader
	// doesn't know which events weren't written.
	lastEvents = 2 * time.Second
)

// Writer writes events to the hub, in the background. Unlike client-go's recorder it doesn't take
// two events of one reason for a series of the first: the second has another note, which would be
// lost. Package job reports nothing twice. Only what a Job waits for is replaced, until it's
// written, by what it waits for later.
type Writer struct {
	client   client.Client
	instance string
	waiting  *backlog
	drops    drops
	late     time.Duration
	// helpers has a place for each writer that helps when events are late.
	helpers chan struct{}
	running sync.WaitGroup
	// writing ends when nothing more is written, by stop; nil: nothing ever was.
	writing context.Context
	stop    context.CancelFunc
}

// drops counts events that were dropped, of which the log tells once a second.
type drops struct {
	mu      sync.Mutex
	since   int // the last line
	written time.Time
}

// add returns how many are to be logged; zero: none now.
func (d *drops) add(n int, now time.Time) (logged int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.since += n
	if now.Sub(d.written) < time.Second {
		return 0
	}
	logged, d.since, d.written = d.since, 0, now
	return logged
}

// NewWriter returns a Writer, which the manager must run.
func NewWriter(c client.Client) *Writer {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return &Writer{
		client:   c,
		instance: v1alpha1.EventController + "-" + host,
		waiting:  newBacklog(maxWaitingBytes),
		late:     late,
		helpers:  make(chan struct{}, maxWriters-1),
	}
}

// Eventf implements events.EventRecorder. It never blocks. Notes have texts of workers, so they are
// cleaned, and cut at what the API allows.
func (w *Writer) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	event, err := w.event(regarding, related, kind, reason, action, text.Clean(fmt.Sprintf(note, args...), text.MaxMessage))
	if err != nil {
		log.Log.Error(err, "Can't make an event", "reason", reason)
		return
	}
	if dropped := w.waiting.add(event, time.Now()); dropped > 0 {
		if n := w.drops.add(dropped, time.Now()); n > 0 {
			log.Log.Info("Too many events are waiting to be written: some were dropped", "events", n, "last", reason)
		}
	}
}

func (w *Writer) event(regarding, related runtime.Object, kind, reason, action, note string) (*eventsv1.Event, error) {
	about, err := reference.GetReference(w.client.Scheme(), regarding)
	if err != nil {
		return nil, err
	}
	var also *corev1.ObjectReference
	if related != nil {
		if also, err = reference.GetReference(w.client.Scheme(), related); err != nil {
			return nil, err
		}
	}
	now, namespace := metav1.NowMicro(), about.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault // where events on cluster-scoped objects are
	}
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace,
			Name:      fmt.Sprintf("%s.%x", about.Name, now.UnixNano()),
		},
		EventTime:           now,
		ReportingController: v1alpha1.EventController,
		ReportingInstance:   w.instance,
		Regarding:           *about,
		Related:             also,
		Type:                kind,
		Reason:              reason,
		Action:              action,
		Note:                strings.Clone(note), // as it was built, it may take twice as much
	}, nil
}

// Start writes one event at a time, so that events yield to the writes of Jobs, of which many are
// under way at once: the more a busy hub delays each write, the fewer events there are. Some write
// more at once when events are late. The manager calls it. It returns when the context ends, so
// that the Lease is released at once: Flush must be called then.
func (w *Writer) Start(ctx context.Context) error {
	w.writing, w.stop = context.WithCancel(context.WithoutCancel(ctx))
	w.running.Go(func() { w.writeAll(ctx) })
	<-ctx.Done()
	return nil
}

// Flush returns when what still waits has been written, or after a short time. It's called when the
// manager has stopped.
func (w *Writer) Flush() {
	if w.writing == nil {
		return
	}
	defer w.stop()
	defer time.AfterFunc(lastEvents, w.stop).Stop()
	for range maxWriters - 1 {
		w.help(0)
	}
	w.writeWaiting(0)
	w.running.Wait()
	if n := w.waiting.len(); n > 0 {
		log.Log.Info("The manager stops: events that still wait aren't written", "events", n)
	}
}

// writeAll writes what comes until the context ends.
func (w *Writer) writeAll(ctx context.Context) {
	for ctx.Err() == nil {
		w.writeWaiting(0)
		select {
		case <-w.waiting.added:
		case <-ctx.Done():
		}
	}
}

// writeWaiting writes what has waited for so long.
func (w *Writer) writeWaiting(least time.Duration) {
	for w.writing.Err() == nil {
		now := time.Now()
		event, since := w.waiting.take(now.Add(-least))
		if event == nil {
			return
		}
		if now.Sub(since) > w.late {
			w.help(w.late)
		}
		w.write(w.writing, event)
	}
}

// help starts one more writer, if there may be one, for as long as events have waited for so long.
func (w *Writer) help(least time.Duration) {
	select {
	case w.helpers <- struct{}{}:
		w.running.Go(func() {
			w.writeWaiting(least)
			<-w.helpers
		})
	default:
	}
}

// write drops what can't be written: the log has it, too. In a namespace that is being deleted no
// event can be created.
func (w *Writer) write(ctx context.Context, event *eventsv1.Event) {
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	err := w.client.Create(ctx, event)
	if err != nil && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) && !apierrors.IsNotFound(err) {
		log.FromContext(ctx).V(1).Info("An event wasn't written", "reason", event.Reason, "cause", err.Error())
	}
}
