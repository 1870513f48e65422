package hub

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/util/podutils"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/plugin/dashboard/view"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// api answers lists as a hub would, holds watches open, and counts the requests.
type api struct {
	answers map[string]any           // by path
	slow    map[string]chan struct{} // paths that answer only when the channel is closed

	mu     sync.Mutex
	asked  map[string]int
	closed bool // connections are, as soon as they are made
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.asked[r.URL.Path]++
	closed := a.closed
	answer, known := a.answers[r.URL.Path]
	a.mu.Unlock()
	if closed {
		panic(http.ErrAbortHandler)
	}
	if release := a.slow[r.URL.Path]; release != nil {
		<-release
	}
	if r.URL.Query().Get("sendInitialEvents") != "" { // it can't stream lists
		answer = &apierrors.NewInvalid(schema.GroupKind{}, "", nil).ErrStatus
	} else if !known {
		answer = &apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", nil).ErrStatus
	} else if r.URL.Query().Has("watch") {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return
	}
	if server, is := answer.(http.Handler); is {
		server.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if status, is := answer.(*metav1.Status); is {
		w.WriteHeader(int(status.Code))
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (a *api) count(path string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked[path]
}

func (a *api) forbid(path string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.answers, path)
}

const (
	jobsPath    = "/apis/batch/v1/jobs"
	eventsPath  = "/api/v1/events"
	workersPath = "/apis/jobferry.dev/v1alpha1/workerclusters"
	ownPath     = "/api/v1/namespaces/team-a/events"
	whyPath     = "/apis/subresources.jobferry.dev/v1alpha1/namespaces/team-a/jobs/pi/why"
)

func theJob() *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team-a", Name: "pi", UID: "1", ManagedFields: []metav1.ManagedFieldsEntry{{}},
			Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "{}", v1alpha1.AnnotationOnClusterLost: "Wait"},
		},
		Spec: batchv1.JobSpec{
			ManagedBy: ptr.To(v1alpha1.ManagedByDispatcher),
			Template:  corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "perl"}}}},
		},
	}
}

func answers() map[string]any {
	event := func(namespace, reason string) corev1.Event {
		return corev1.Event{
			ObjectMeta:          metav1.ObjectMeta{Namespace: namespace, Name: reason, Labels: map[string]string{"a": "b"}},
			InvolvedObject:      corev1.ObjectReference{Kind: "Job", Namespace: "team-a", Name: "pi", UID: "1"},
			ReportingController: v1alpha1.EventController, Reason: reason,
		}
	}
	return map[string]any{
		jobsPath:    &batchv1.JobList{Items: []batchv1.Job{*theJob(), {ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "other", Labels: map[string]string{"a": "b"}}}}},
		eventsPath:  &corev1.EventList{Items: []corev1.Event{event("team-a", "Pending"), event("team-b", "Forged")}},
		ownPath:     &corev1.EventList{Items: []corev1.Event{event("team-a", "Pending")}},
		workersPath: &v1alpha1.WorkerClusterList{Items: []v1alpha1.WorkerCluster{{ObjectMeta: metav1.ObjectMeta{Name: "west"}}}},
		whyPath:     &v1alpha1.PlacementExplanation{Message: "0/1 clusters available"},
	}
}

// run runs a Hub at an API server until the test ends.
func run(t *testing.T, a *api) (*Hub, *httptest.Server, *clocktesting.FakePassiveClock) {
	t.Helper()
	a.asked = map[string]int{}
	server := httptest.NewServer(a)
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	h, err := New(&rest.Config{Host: server.URL, WarningHandler: rest.NoWarnings{}, QPS: -1}, "", clock)
	if err != nil {
		t.Fatal(err)
	}
	h.probe.interval = 50 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { h.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		server.CloseClientConnections()
		server.Close()
	})
	return h, server, clock
}

// until waits for a condition, which a change brings about.
func until(t *testing.T, h *Hub, what string, condition func() bool) {
	t.Helper()
	limit := time.After(30 * time.Second)
	for {
		changed := h.Changed()
		if condition() {
			return
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("%s: jobs %+v, events %+v, workers %+v", what, h.JobsHealth(), h.EventsHealth(), h.WorkersHealth())
		}
	}
}

func allLive(h *Hub) func() bool {
	return func() bool {
		return h.JobsHealth().State == Live && h.EventsHealth().State == Live && h.WorkersHealth().State == Live && len(h.Jobs()) == 1 && len(h.Workers()) == 1
	}
}

func TestFeeds(t *testing.T) {
	h, _, _ := run(t, &api{answers: answers()})
	until(t, h, "all is read", allLive(h))
	job := h.Job(types.NamespacedName{Namespace: "team-a", Name: "pi"})
	if job == nil || job.ManagedFields != nil || len(job.Spec.Template.Spec.Containers) != 0 || len(job.Annotations) != 1 {
		t.Errorf("%+v", job)
	}
	if h.Job(types.NamespacedName{Namespace: "team-a", Name: "other"}) != nil {
		t.Error("a Job that isn't Jobferry's is shown")
	}
	var events []corev1.Event
	until(t, h, "events", func() bool {
		events = h.Details(t.Context(), job).HubEvents
		return len(events) > 0
	})
	if len(events) != 1 || events[0].Reason != "Pending" || events[0].Labels != nil {
		t.Errorf("%+v: of the Job's own namespace, trimmed", events)
	}
	if is := h.Around()(job); is.Reason.Reason != "Pending" {
		t.Errorf("%+v", is)
	}
}

// What is forbidden doesn't hide the rest.
func TestForbidden(t *testing.T) {
	a := &api{answers: answers()}
	delete(a.answers, workersPath)
	h, _, _ := run(t, a)
	until(t, h, "workers are forbidden", func() bool { return h.WorkersHealth().State == Forbidden })
	until(t, h, "Jobs are read", func() bool { return h.JobsHealth().State == Live && len(h.Jobs()) == 1 })
	if text := h.WorkersHealth().Message; !strings.Contains(text, "ask the cluster's admin") {
		t.Errorf("%q doesn't say what to do", text)
	}
}

// A hub that has gone leaves what was known of it.
func TestDisconnected(t *testing.T) {
	h, server, _ := run(t, &api{answers: answers()})
	until(t, h, "all is read", allLive(h))
	_ = server.Listener.Close()
	server.CloseClientConnections()
	until(t, h, "the hub has gone", func() bool { return h.JobsHealth().State == Disconnected })
	if len(h.Jobs()) != 1 {
		t.Error("the Jobs are gone, too")
	}
}

// So does one whose connections are closed as soon as they are made, which no watch reports.
func TestClosedConnections(t *testing.T) {
	a := &api{answers: answers()}
	h, server, _ := run(t, a)
	until(t, h, "all is read", allLive(h))
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	server.CloseClientConnections()
	until(t, h, "the hub has gone", func() bool { return h.JobsHealth().State == Disconnected })
	a.mu.Lock()
	a.closed = false
	a.mu.Unlock()
	until(t, h, "the hub is back", allLive(h))
}

// What workers have is read again only after a while.
func TestDetails(t *testing.T) {
	a := &api{answers: answers()}
	h, _, clock := run(t, a)
	until(t, h, "all is read", allLive(h))
	job := h.Jobs()[0]
	var in view.JobInput
	until(t, h, "the answer", func() bool {
		in = h.Details(t.Context(), job)
		return !in.Reading
	})
	if in.Why == nil || in.Why.Message != "0/1 clusters available" || in.Missing.Pods != nil || in.Job != job {
		t.Errorf("%+v", in)
	}
	h.Details(t.Context(), job)
	if n := a.count(whyPath); n != 1 {
		t.Errorf("asked %d times at once", n)
	}
	clock.SetTime(clock.Now().Add(detailAge))
	until(t, h, "it's asked again after a while", func() bool {
		h.Details(t.Context(), job)
		return a.count(whyPath) == 2
	})
	a.forbid(whyPath)
	until(t, h, "it's forbidden", func() bool {
		clock.SetTime(clock.Now().Add(detailAge))
		in := h.Details(t.Context(), job)
		return in.Why == nil && len(in.Missing.Why) == 1
	})
}

// A page whose events are older than the Job's last one knows that. An event that expires says
// nothing any more.
func TestEventsThatComeAndGo(t *testing.T) {
	a := &api{answers: answers()}
	h, _, clock := run(t, a)
	until(t, h, "the events are read", func() bool { return h.EventsHealth().State == Live })
	job := h.Jobs()[0]
	until(t, h, "the Job's events are read", func() bool { return len(h.Details(t.Context(), job).HubEvents) == 1 })
	e := a.answers[ownPath].(*corev1.EventList).Items[0]
	e.Reason, e.LastTimestamp = "Placed", metav1.NewTime(clock.Now())
	if !h.reasons.take(watch.Added, &e) || h.reasons.take(watch.Added, &corev1.Event{}) {
		t.Error("it isn't known which event is new")
	}
	if in := h.Details(t.Context(), job); !in.Behind || in.Reason.Reason != "Placed" {
		t.Errorf("%+v", in)
	}
	clock.SetTime(clock.Now().Add(detailAge))
	until(t, h, "it's read again", func() bool { return !h.Details(t.Context(), job).Behind })
	old := a.answers[ownPath].(*corev1.EventList).Items[0]
	if h.reasons.take(watch.Deleted, &old) || h.Around()(job).Reason.Reason != "Placed" {
		t.Error("an older event is gone, and with it the last one")
	}
	if !h.reasons.take(watch.Deleted, &e) || h.Around()(job).Reason.Reason != "" {
		t.Error("an event that has expired says something")
	}
}

// A worker that doesn't answer holds up nothing: its part of the page comes later.
func TestDetailsOfASlowWorker(t *testing.T) {
	release := make(chan struct{})
	a := &api{answers: answers(), slow: map[string]chan struct{}{whyPath: release}}
	h, _, _ := run(t, a)
	until(t, h, "all is read", allLive(h))
	job := h.Jobs()[0]
	if in := h.Details(t.Context(), job); !in.Reading || in.Why != nil || in.Job != job || len(in.HubEvents) != 1 {
		t.Errorf("%+v", in)
	}
	h.Details(t.Context(), job)
	if n := a.count(whyPath); n > 1 {
		t.Errorf("asked %d times before there was an answer", n)
	}
	close(release)
	until(t, h, "the answer", func() bool {
		in := h.Details(t.Context(), job)
		return !in.Reading && in.Why != nil
	})
}

func TestDetailsAreBounded(t *testing.T) {
	var c detailCache
	named := func(name, uid, workers string) subject {
		return subject{types.NamespacedName{Name: name}, types.UID(uid), workers}
	}
	first := c.of(named("0", "0", "west"))
	for _, name := range strings.Split("123456", "") {
		c.of(named(name, name, ""))
	}
	if c.of(named("0", "0", "west")) != first {
		t.Error("what was looked at is forgotten")
	}
	if c.of(named("0", "another", "west")) == first {
		t.Error("a Job has what was read of the one before it")
	}
	if c.of(named("0", "0", "east")) == first {
		t.Error("a Job that has moved has what was read of its former worker")
	}
	for _, name := range strings.Split("abcdefgh", "") {
		c.of(named(name, name, ""))
	}
	if len(c.kept) != detailsKept || c.of(named("0", "0", "west")) == first {
		t.Error("all is kept for ever")
	}
}

func TestTrimPod(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	waits := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: long, Message: long}}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: long, Message: long, ExitCode: 7}}
	pod := corev1.Pod{
		Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "main", Image: "perl"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, StartTime: &metav1.Time{}, Reason: long, Message: long,
			Conditions:            []corev1.PodCondition{{Type: "Other", Message: long}, {Type: corev1.PodReady, Status: corev1.ConditionTrue, Message: long}},
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "init", State: ended, ImageID: long}},
			ContainerStatuses:     []corev1.ContainerStatus{{Name: "main", Ready: true, RestartCount: 3, State: waits, LastTerminationState: ended}},
		},
	}
	trimPod(&pod)
	if pod.Spec.NodeName != "n" || pod.Spec.Containers[0].Name != "main" || pod.Spec.Containers[0].Image != "" {
		t.Errorf("%+v", pod.Spec)
	}
	main, init := pod.Status.ContainerStatuses[0], pod.Status.InitContainerStatuses[0]
	if pod.Status.StartTime == nil || !podutils.IsPodReady(&pod) || !main.Ready || main.RestartCount != 3 || main.State.Waiting == nil || init.State.Terminated.ExitCode != 7 {
		t.Errorf("%+v", pod.Status)
	}
	if pod.Size() > 8*text.MaxReason {
		t.Errorf("%d bytes are left", pod.Size())
	}
}

// groups is the answer of a hub that has these groups of APIs.
func groups(names ...string) *metav1.APIGroupList {
	list := &metav1.APIGroupList{}
	for _, name := range names {
		list.Groups = append(list.Groups, metav1.APIGroup{Name: name})
	}
	return list
}

// A hub without Jobferry isn't one without Jobs, also for users who are refused what it doesn't
// have.
func TestNoJobferry(t *testing.T) {
	a := &api{answers: answers()}
	a.answers["/apis"] = groups("batch")
	delete(a.answers, workersPath)
	h, _, _ := run(t, a)
	until(t, h, "the hub has no Jobferry", func() bool {
		return h.JobsHealth().State == NoJobferry && h.WorkersHealth().State == NoJobferry && h.Health().State == NoJobferry
	})
	a.mu.Lock()
	a.answers["/apis"] = groups("batch", v1alpha1.GroupVersion.Group)
	a.mu.Unlock()
	until(t, h, "it's installed", func() bool { return h.JobsHealth().State == Live && h.Health().State == Live })
}

func TestUnauthorized(t *testing.T) {
	a := &api{answers: answers()}
	a.answers[jobsPath] = &apierrors.NewUnauthorized("").ErrStatus
	h, _, _ := run(t, a)
	until(t, h, "the credentials aren't accepted", func() bool { return h.JobsHealth().State == Unauthorized })
}

// Without Kueue there are no queues, and the page says so.
func TestQueues(t *testing.T) {
	a := &api{answers: map[string]any{}}
	none := &apierrors.NewNotFound(schema.GroupResource{}, "").ErrStatus
	for _, resource := range []string{"clusterqueues", "localqueues"} {
		a.answers["/apis/kueue.x-k8s.io/v1beta2/"+resource] = none
	}
	h, _, _ := run(t, a)
	until(t, h, "the hub answers", func() bool { return h.Health().State == Live })
	if h.HasQueues() {
		t.Error("the hub has queues")
	}
	if q := h.Queues(t.Context()); len(q.Missing) != 1 || q.ClusterQueues != nil {
		t.Errorf("%+v", q)
	}
}

// Kueue that is installed while the dashboard runs is noticed.
func TestHasQueues(t *testing.T) {
	a := &api{answers: answers()}
	a.answers["/apis"] = groups(v1alpha1.GroupVersion.Group)
	h, _, _ := run(t, a)
	until(t, h, "the hub answers", func() bool { return h.Health().State == Live && !h.HasQueues() })
	a.mu.Lock()
	a.answers["/apis"] = groups(v1alpha1.GroupVersion.Group, "kueue.x-k8s.io")
	a.mu.Unlock()
	until(t, h, "the hub has queues", h.HasQueues)
}
