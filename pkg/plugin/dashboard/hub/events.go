package hub

import (
	"context"
	"errors"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/plugin/access"
)

// reasonFeed keeps what the last event of each Job says.
type reasonFeed struct {
	feedHealth
	client    client.WithWatch
	namespace string
	isKnown   func(jobview.Subject) bool

	mu      sync.Mutex
	isRead  bool
	reasons *jobview.ReasonsOfKnown
}

// reasonsAgain is after what time the events are read again when a watch of them has ended.
var reasonsAgain = wait.Backoff{Duration: time.Second, Factor: 2, Steps: 5, Cap: 30 * time.Second, Jitter: 0.5}

// run reads and watches from the moment on that the Jobs are known, until the context ends.
func (f *reasonFeed) run(ctx context.Context, jobsKnown <-chan struct{}) {
	select {
	case <-jobsKnown:
	case <-ctx.Done():
		return
	}
	pause := reasonsAgain.DelayWithReset(clock.RealClock{}, 2*time.Minute)
	_ = pause.Until(ctx, true, true, func(ctx context.Context) (bool, error) { // the context's error
		f.note(f.follow(ctx))
		return false, nil
	})
}

// follow reads all events, and watches for others until the watch ends.
func (f *reasonFeed) follow(ctx context.Context) error {
	all := jobview.NewReasonsOfKnown(f.isKnown)
	version, err := access.EachEvent(ctx, f.client, f.namespace, "", func(e *corev1.Event) { all.Note(e) })
	if err != nil {
		return err
	}
	watcher, err := f.client.Watch(ctx, &corev1.EventList{}, client.InNamespace(f.namespace), access.EventsAbout(""),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	f.mu.Lock()
	f.reasons, f.isRead = all, true
	f.mu.Unlock()
	f.note(nil)
	f.changed()
	for e := range watcher.ResultChan() {
		if event, is := e.Object.(*corev1.Event); is && f.take(e.Type, event) {
			f.changed()
		}
	}
	return nil
}

// take reports whether an event changes what the last one of its Job says.
func (f *reasonFeed) take(kind watch.EventType, e *corev1.Event) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if kind != watch.Deleted {
		return f.reasons.Note(e)
	}
	of, says, _ := jobview.Read(e)
	last, is := f.reasons.Reasons[of]
	if is = is && last.At.Equal(says.At); is { // it has expired
		delete(f.reasons.Reasons, of)
	}
	return is
}

func (f *reasonFeed) of(job *batchv1.Job) jobview.Reason {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reasons.Reasons[jobview.SubjectOf(job)]
}

// Health returns Loading until all events were read once.
func (f *reasonFeed) Health() Health {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.health(f.isRead)
}

// maxEventsRead is how many bytes of a Job's events are read for its page.
const maxEventsRead = 4 << 20

var errManyEvents = errors.New("the Job has more events than are read here: see kubectl jobferry events")

// ownEvents are those of a Job on the hub, and what the last one said before they were read.
type ownEvents struct {
	events []corev1.Event
	err    error
	last   jobview.Reason
}

// eventsOf reads the last events of a Job.
func (h *Hub) eventsOf(ctx context.Context, job *batchv1.Job, last jobview.Reason) ownEvents {
	ctx, stop := context.WithTimeout(ctx, detailTimeout)
	defer stop()
	var events jobview.LastEvents
	read := 0
	_, err := access.EachEvent(ctx, h.client, job.Namespace, string(job.UID), func(e *corev1.Event) {
		if read += e.Size(); read > maxEventsRead {
			stop()
		}
		if trimmed := trimEvent(e); trimmed != nil {
			events.Add(trimmed)
		}
	})
	if read > maxEventsRead {
		err = errManyEvents
	}
	own := ownEvents{err: access.Explain(err), last: last}
	own.events, _ = events.Get()
	return own
}
