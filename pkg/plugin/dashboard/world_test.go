package dashboard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/dashboard/hub"
	"github.com/jobferry/jobferry/pkg/plugin/dashboard/view"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func before(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// world is a Hub in memory.
type world struct {
	mu        sync.Mutex
	next      chan struct{}
	namespace string
	jobs      []*batchv1.Job
	workers   []*v1alpha1.WorkerCluster
	details   view.JobInput
	health    hub.Health
	queues    bool
	logs      map[string]string
	asked     corev1.PodLogOptions // of the last log
}

func newWorld() *world {
	return &world{next: make(chan struct{}), health: hub.Health{State: hub.Live, Since: now}, logs: map[string]string{}}
}

func (w *world) Namespace() string { return w.namespace }

func (w *world) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.next
}

// change changes the world, and tells those who wait for it.
func (w *world) change(edit func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	edit()
	close(w.next)
	w.next = make(chan struct{})
}

func (w *world) JobsHealth() hub.Health {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.health
}
func (w *world) Health() hub.Health        { return w.JobsHealth() }
func (w *world) EventsHealth() hub.Health  { return hub.Health{State: hub.Live} }
func (w *world) WorkersHealth() hub.Health { return w.JobsHealth() }

func (w *world) Jobs() []*batchv1.Job {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.jobs
}

func (w *world) Job(key types.NamespacedName) *batchv1.Job {
	for _, job := range w.Jobs() {
		if job.Namespace == key.Namespace && job.Name == key.Name {
			return job
		}
	}
	return nil
}

func (w *world) Workers() []*v1alpha1.WorkerCluster { return w.workers }
func (w *world) Around() view.Around {
	return func(*batchv1.Job) jobview.Around { return jobview.Around{} }
}
func (w *world) HasQueues() bool                    { return w.queues }
func (w *world) Queues(context.Context) view.Queues { return view.Queues{} }
func (w *world) Details(_ context.Context, job *batchv1.Job) view.JobInput {
	w.mu.Lock()
	defer w.mu.Unlock()
	in := w.details
	in.Job = job
	return in
}

func (w *world) Log(_ context.Context, job types.NamespacedName, choice access.PodChoice, options *corev1.PodLogOptions) (io.ReadCloser, error) {
	w.asked = *options
	text, there := w.logs[choice.Worker+"/"+choice.Pod+"/"+options.Container]
	if !there {
		return nil, errors.New("no such log of " + job.Name)
	}
	return io.NopCloser(strings.NewReader(text)), nil
}

// job makes a Job that runs in west.
func job(name string, edits ...func(*batchv1.Job)) *batchv1.Job {
	started := before(9 * time.Minute)
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team-a", Name: name, UID: types.UID(name), CreationTimestamp: before(10 * time.Minute),
		},
		Spec:   batchv1.JobSpec{ManagedBy: ptr.To(v1alpha1.ManagedByDispatcher), Parallelism: ptr.To[int32](3), Completions: ptr.To[int32](10)},
		Status: batchv1.JobStatus{StartTime: &started, Active: 3, Ready: ptr.To[int32](3), Succeeded: 4},
	}
	hubstate.Set(j, hubstate.Changes{hubstate.Cluster: "west"})
	for _, edit := range edits {
		edit(j)
	}
	return j
}

func indexed(completed string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Spec.CompletionMode, j.Status.CompletedIndexes = ptr.To(batchv1.IndexedCompletion), completed
	}
}

func pod(name string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: before(9 * time.Minute), Annotations: map[string]string{v1alpha1.AnnotationCluster: "west"}},
		Spec:       corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "main"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, StartTime: ptr.To(before(9 * time.Minute))},
	}
}

func worker(name string, ready metav1.ConditionStatus, message string) *v1alpha1.WorkerCluster {
	w := &v1alpha1.WorkerCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.WorkerClusterSpec{Weight: 1, JobController: v1alpha1.JobControllerBuiltIn}}
	w.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("40"), corev1.ResourceMemory: resource.MustParse("96Gi"), "nvidia.com/gpu": resource.MustParse("8")}
	w.Status.Requested = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10"), corev1.ResourceMemory: resource.MustParse("84Gi"), "nvidia.com/gpu": resource.MustParse("8")}
	w.Status.Nodes, w.Status.Jobs, w.Status.KubernetesVersion = 3, 2, "v1.36.3"
	w.Status.LastContactTime = ptr.To(before(70 * time.Second))
	meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: ready, Reason: "Connected", Message: message, LastTransitionTime: before(time.Minute)})
	meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionSchedulable, Status: ready, Reason: "Schedulable"})
	return w
}

// browser is a user's, at a dashboard of the world.
type browser struct {
	t      *testing.T
	server *Server
	http   *httptest.Server
	clock  *clocktesting.FakeClock
	cookie *http.Cookie
}

func open(t *testing.T, w *world) *browser {
	t.Helper()
	b := &browser{t: t, clock: clocktesting.NewFakeClock(now)}
	b.server = New(w, Options{HubName: "hub", Flags: []string{"--context", "my hub"}, Clock: b.clock})
	b.http = httptest.NewUnstartedServer(nil)
	b.http.Config.Handler = b.server.Handler(b.http.Listener.Addr().String())
	b.http.Start()
	t.Cleanup(b.http.Close)
	b.cookie = &http.Cookie{Name: "jobferry-dashboard-" + b.port(), Value: b.server.token}
	return b
}

func (b *browser) port() string {
	address, err := url.Parse(b.http.URL)
	if err != nil {
		b.t.Fatal(err)
	}
	return address.Port()
}

// request makes a request with the cookie.
func (b *browser) request(path string) *http.Request {
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.http.URL+b.server.base+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	r.AddCookie(b.cookie)
	return r
}

func (b *browser) do(r *http.Request) *http.Response {
	b.t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	return response
}

// get returns the status and the body, with addresses as they are below the server's secret path.
func (b *browser) get(path string) (int, string) {
	b.t.Helper()
	response := b.do(b.request(path))
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return response.StatusCode, strings.ReplaceAll(string(body), b.server.base, "")
}

// shows checks that a page has the texts.
func (b *browser) shows(path string, status int, texts ...string) string {
	b.t.Helper()
	got, body := b.get(path)
	if got != status {
		b.t.Errorf("%s: status %d, want %d", path, got, status)
	}
	for _, text := range texts {
		if !strings.Contains(body, text) {
			b.t.Errorf("%s: %q is missing in\n%s", path, text, body)
		}
	}
	return body
}

func fleet(n int) (jobs []*batchv1.Job) {
	for i := range n {
		jobs = append(jobs, job(fmt.Sprintf("job-%04d", i)))
	}
	return jobs
}
