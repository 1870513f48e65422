package dispatchedjobs

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/util/apistatus"
	"github.com/jobferry/jobferry/pkg/util/digest"
)

const (
	// refreshes is for how many Jobs a watch reads the state after their reasons changed, before it
	// pauses.
	refreshes    = 10
	refreshPause = time.Second
	// maxSent bounds the Jobs whose version a watch remembers. Of further ones, a new reason is sent
	// with the Job's next change.
	maxSent = 20_000
)

// watcher is one watch of a client.
type watcher struct {
	form

	server    *Server
	to        http.ResponseWriter
	namespace string
	options   *Options
	begun     bool // an event was sent
	// sent are the versions of the unfinished Jobs that were sent.
	sent map[digest.Digest]digest.Digest
}

// Watch sends changes of Jobs of a namespace, or of all, until the context, or the watch on the
// hub, ends.
func (s *Server) Watch(w http.ResponseWriter, r *http.Request, namespace string, o *Options) error {
	f, err := formOf(r.Header, r.URL.Query())
	if err != nil {
		return err
	}
	defer s.useReasons(r.Context(), w)()
	feed := s.reasons.subscribe(namespace)
	defer feed.end()
	o.Watch = true
	jobs, err := s.hub.Jobs(namespace).Watch(r.Context(), o.ListOptions)
	if err != nil {
		return fromHub(err)
	}
	defer jobs.Stop()
	// the client learns that the watch has begun
	if err := http.NewResponseController(w).Flush(); err != nil {
		return err
	}
	out := &watcher{form: f, server: s, to: w, namespace: namespace, options: o, sent: map[digest.Digest]digest.Digest{}}
	return out.run(r.Context(), jobs.ResultChan(), feed)
}

func (w *watcher) run(ctx context.Context, jobs <-chan watch.Event, feed *feed) error {
	changed := feed.changed
	var pause <-chan time.Time
	for {
		var err error
		select {
		case <-ctx.Done(): // a shutdown ends it as the hub's own would: the client goes on elsewhere
			return nil
		case event, open := <-jobs:
			if !open {
				return nil
			}
			err = w.pass(event)
		case <-changed:
			err = w.refresh(ctx, feed.take(refreshes))
			changed, pause = nil, time.After(refreshPause)
		case <-pause:
			changed, pause = feed.changed, nil
		}
		if err != nil {
			return err
		}
	}
}

// pass sends an event of the hub.
func (w *watcher) pass(event watch.Event) error {
	job, isJob := event.Object.(*batchv1.Job)
	switch {
	case !isJob: // such as that the resource version is too old
		return w.end(apierrors.FromObject(event.Object))
	case event.Type == watch.Bookmark:
		seen := jobview.DispatchedJob{ObjectMeta: metav1.ObjectMeta{ResourceVersion: job.ResourceVersion, Annotations: job.Annotations}}
		return w.send(watch.Bookmark, &seen)
	case !mirror.Managed(job):
		return nil
	}
	seen := w.server.view(job)
	w.remember(event.Type, &seen)
	return w.send(event.Type, &seen)
}

// end sends the hub's error. The hub ends the watch, too.
func (w *watcher) end(err error) error {
	content, err := json.Marshal(apistatus.Of(err))
	if err != nil {
		return err
	}
	return w.write(watch.Error, content)
}

// remember takes note of what is sent.
func (w *watcher) remember(event watch.EventType, job *jobview.DispatchedJob) {
	of := digest.Of(job.UID)
	_, known := w.sent[of]
	switch {
	case event == watch.Deleted || job.Status.State.IsFinal():
		delete(w.sent, of)
	case known || len(w.sent) < maxSent:
		w.sent[of] = digest.Of(job.ResourceVersion)
	}
}

// refresh sends Jobs once more whose reasons have changed.
func (w *watcher) refresh(ctx context.Context, changed []change) error {
	for _, c := range changed {
		job, err := w.server.read(ctx, w.namespace, types.NamespacedName{Namespace: c.Namespace, Name: c.name}, "")
		if err != nil || job.UID != c.UID || !mirror.Managed(job) || !w.options.match(job) || !w.isSent(job) {
			continue // without it, the reason is sent with the next change
		}
		seen := w.server.view(job)
		if err := w.send(watch.Modified, &seen); err != nil {
			return err
		}
	}
	return nil
}

// isSent reports whether the client has exactly this version of a Job, from this watch or from
// before.
func (w *watcher) isSent(job *batchv1.Job) bool {
	if mirror.Finished(job) {
		return false
	}
	if version, known := w.sent[digest.Of(job.UID)]; known {
		return version == digest.Of(job.ResourceVersion)
	}
	order, err := resourceversion.CompareResourceVersion(job.ResourceVersion, w.options.ResourceVersion)
	return err == nil && order <= 0
}

func (w *watcher) send(event watch.EventType, job *jobview.DispatchedJob) error {
	object, err := w.one(job, time.Now(), !w.begun)
	if err != nil {
		return err
	}
	w.begun = true
	content, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return w.write(event, content)
}

// write sends an event at once. A client that doesn't read loses its place.
func (w *watcher) write(event watch.EventType, object []byte) error {
	content, err := json.Marshal(metav1.WatchEvent{Type: string(event), Object: runtime.RawExtension{Raw: object}})
	if err != nil {
		return err
	}
	control := http.NewResponseController(w.to)
	_ = control.SetWriteDeadline(time.Now().Add(writeTimeout)) // a recorder in a test has none
	if _, err := w.to.Write(append(content, '\n')); err != nil {
		return err
	}
	if err := control.Flush(); err != nil {
		return err
	}
	_ = control.SetWriteDeadline(time.Time{}) // as before
	return nil
}
