package dispatchedjobs

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/util/digest"
)

// begin makes a watch from a version, and what it has sent.
func begin(t *testing.T, s *Server, query string, f form) (*watcher, *httptest.ResponseRecorder) {
	out := httptest.NewRecorder()
	return &watcher{form: f, server: s, to: out, namespace: "team", options: options(t, query), sent: map[digest.Digest]digest.Digest{}}, out
}

// sent are the events that a client gets: type, name, version and why.
func sent(t *testing.T, out *httptest.ResponseRecorder) string {
	t.Helper()
	var lines []string
	for decoder := json.NewDecoder(out.Body); decoder.More(); {
		var e metav1.WatchEvent
		var j jobview.DispatchedJob
		if err := decoder.Decode(&e); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(e.Object.Raw, &j); err != nil && e.Type != string(watch.Error) {
			t.Fatal(err)
		}
		lines = append(lines, strings.TrimSpace(strings.Join([]string{e.Type, j.Name, j.ResourceVersion, j.Status.Why}, " ")))
	}
	return strings.Join(lines, "; ")
}

// A new reason is sent for the version of a Job that the client has, and never for another one.
func TestANewReason(t *testing.T) {
	for name, row := range map[string]struct {
		before  []*batchv1.Job // sent by this watch
		now     *batchv1.Job   // on the hub
		query   string
		isAbout change
		want    string
	}{
		"of a Job before the watch":   {nil, job("a", "9"), "resourceVersion=10", about("a"), "MODIFIED a 9 waits"},
		"of a Job after it":           {nil, job("a", "11"), "resourceVersion=10", about("a"), ""},
		"of a Job that was sent":      {[]*batchv1.Job{job("a", "11")}, job("a", "11"), "resourceVersion=10", about("a"), "MODIFIED a 11 waits"},
		"of one that changed since":   {[]*batchv1.Job{job("a", "11")}, job("a", "12"), "resourceVersion=10", about("a"), ""},
		"where the hub is behind":     {[]*batchv1.Job{job("a", "11")}, job("a", "9"), "resourceVersion=10", about("a"), ""},
		"without a version":           {nil, job("a", "9"), "", about("a"), ""},
		"of a Job of that name since": {nil, job("a", "9"), "resourceVersion=10", change{jobview.Subject{Namespace: "team", UID: "old"}, "a"}, ""},
		"of a Job that isn't ours":    {nil, job("a", "9", plain), "resourceVersion=10", about("a"), ""},
		"of one that has ended":       {nil, job("a", "9", complete), "resourceVersion=10", about("a"), ""},
		"of one with other labels":    {nil, job("a", "9"), "resourceVersion=10&labelSelector=x", about("a"), ""},
		"of one with another name":    {nil, job("a", "9"), "resourceVersion=10&fieldSelector=metadata.name%3Db", about("a"), ""},
		"of one that is gone":         {nil, job("b", "9"), "resourceVersion=10", about("a"), ""},
	} {
		s, _ := newServer(row.now)
		w, out := begin(t, s, row.query, form{})
		for _, j := range row.before {
			if err := w.pass(watch.Event{Type: watch.Added, Object: j}); err != nil {
				t.Fatal(err)
			}
		}
		out.Body.Reset()
		s.reasons.apply(watch.Added, event("a", "Pending", "waits", 1))
		if err := w.refresh(t.Context(), []change{row.isAbout}); err != nil {
			t.Fatal(err)
		}
		if got := sent(t, out); got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}

// A Job that was out of touch is sent again when its worker is back, and no other.
func TestAWorkerReturns(t *testing.T) {
	lost := job("a", "11", func(j *batchv1.Job) {
		hubstate.Set(j, hubstate.Changes{hubstate.Cluster: "west"})
		j.Status.Active, j.Status.Ready = 1, ptr.To[int32](1)
	})
	s, _ := newServer(lost)
	isOut := true
	s.workers = func(string) jobview.Seen { return jobview.Seen{OutOfTouch: isOut} }
	w, out := begin(t, s, "", form{})
	s.reasons.apply(watch.Added, event("a", v1alpha1.EventOutOfTouch, "no answer", 1))
	s.reasons.apply(watch.Added, event("b", "Pending", "waits", 1))
	feed := s.reasons.subscribe("team")
	if err := w.pass(watch.Event{Type: watch.Added, Object: lost}); err != nil {
		t.Fatal(err)
	}
	isOut = false
	s.WorkerReturned()
	if err := w.refresh(t.Context(), feed.take(refreshes)); err != nil {
		t.Fatal(err)
	}
	if got, want := sent(t, out), "ADDED a 11 no answer; MODIFIED a 11"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func about(name string) change {
	return change{jobview.Subject{Namespace: "team", UID: types.UID("uid-" + name)}, name}
}

// TestEventsOfTheHub: what isn't Jobferry's is left out, and an error is told.
func TestEventsOfTheHub(t *testing.T) {
	s, _ := newServer()
	w, out := begin(t, s, "resourceVersion=10", form{})
	bookmark := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "20", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
	expired := apierrors.NewResourceExpired("too old").ErrStatus
	for _, e := range []watch.Event{
		{Type: watch.Added, Object: job("a", "11")},
		{Type: watch.Added, Object: job("plain", "12", plain)},
		{Type: watch.Modified, Object: job("a", "13", complete)},
		{Type: watch.Deleted, Object: job("a", "14", complete)},
		{Type: watch.Bookmark, Object: bookmark},
		{Type: watch.Error, Object: &expired},
	} {
		if err := w.pass(e); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(out.Body.String(), `"k8s.io/initial-events-end":"true"`) || !strings.Contains(out.Body.String(), `"kind":"Status","apiVersion":"v1"`) ||
		!strings.Contains(out.Body.String(), `"code":410`) {
		t.Errorf("%s", out.Body)
	}
	if got, want := sent(t, out), "ADDED a 11; MODIFIED a 13; DELETED a 14; BOOKMARK  20; ERROR"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if len(w.sent) != 0 {
		t.Errorf("remembered: %v", w.sent)
	}
}

// The columns are sent once.
func TestAWatchOfATable(t *testing.T) {
	s, _ := newServer()
	w, out := begin(t, s, "", form{table: true})
	for _, name := range []string{"a", "b"} {
		if err := w.pass(watch.Event{Type: watch.Added, Object: job(name, "11")}); err != nil {
			t.Fatal(err)
		}
	}
	for i, line := range strings.Split(strings.TrimSpace(out.Body.String()), "\n") {
		var e metav1.WatchEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if got := table(t, e.Object.Raw); strings.Contains(got, "Name|") != (i == 0) {
			t.Errorf("event %d: %s", i, got)
		}
	}
}

// A watch ends cleanly with that of the hub, and with its context. An event that comes meanwhile is
// told.
func TestAWatchEnds(t *testing.T) {
	s, hub := newServer(job("a", "9"))
	jobs := watch.NewFake()
	begun := make(chan struct{}, 2)
	hub.PrependWatchReactor("jobs", func(clienttesting.Action) (bool, watch.Interface, error) {
		begun <- struct{}{}
		return true, jobs, nil
	})
	events := watch.NewFake()
	hub.PrependReactor("list", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &corev1.EventList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}, Items: []corev1.Event{*event("a", "Pending", "waits", 1)}}, nil
	})
	hub.PrependWatchReactor("events", func(clienttesting.Action) (bool, watch.Interface, error) { return true, events, nil })
	s.reasons.forget()
	ctx, cancel := context.WithCancel(t.Context())
	running := make(chan struct{})
	go func() { s.Run(ctx); close(running) }()

	out, ended := httptest.NewRecorder(), make(chan error, 1)
	read := make(chan string, 1)
	go func() {
		ended <- s.Watch(signals{out, read}, get("").WithContext(ctx), "team", options(t, "resourceVersion=10"))
	}()
	<-begun
	events.Modify(event("a", "Pending", "waits longer", 2)) // once the events are watched
	if got := <-read; !strings.Contains(got, "waits longer") {
		t.Errorf("%s", got)
	}
	jobs.Stop()
	if err := <-ended; err != nil {
		t.Errorf("with the hub's: %v", err)
	}
	jobs.Reset()
	go func() { ended <- s.Watch(out, get("").WithContext(ctx), "team", options(t, "resourceVersion=10")) }()
	<-begun
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("with its context: %v", err)
	}
	<-running
	events.Stop()
}

// signals passes on the first thing that is written.
type signals struct {
	*httptest.ResponseRecorder
	read chan<- string
}

func (s signals) Write(content []byte) (int, error) {
	select {
	case s.read <- string(content):
	default:
	}
	return s.ResponseRecorder.Write(content)
}
