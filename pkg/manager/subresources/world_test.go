package subresources

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/subresources/dispatchedjobs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	origin    = v1alpha1.Origin("here")
	namespace = "team"
	hubUID    = types.UID("hub-uid")
	mirrorUID = types.UID("mirror-uid")
)

// world is a hub with one Job, placed on the worker "w", and the server before it.
type world struct {
	t       *testing.T
	hub     *hub
	worker  *worker
	api     *httptest.Server
	server  *server
	find    *finder
	handler *handler
	// authorize decides who may do what. Without it, everybody may do everything.
	authorize authorizer
	// jobs can be asked after table.
	jobs *dispatchedjobs.Server
}

func newWorld(t *testing.T, edits ...func(*Options)) *world {
	t.Helper()
	w := &world{t: t, worker: newWorker(t), hub: &hub{objects: map[string]client.Object{}}, jobs: &dispatchedjobs.Server{}}
	w.hub.put(hubJob())
	w.hub.put(workerCluster(metav1.ConditionTrue, ""))
	w.hub.put(w.worker.secret("1"))
	// 4 MiB take a while with -race
	options := Options{Namespace: "system", Origin: origin, RequestTimeout: time.Minute}
	for _, edit := range edits {
		edit(&options)
	}
	w.server = newServer(options.withDefaults(), logr.Discard())
	links := newLinks(w.hub, w.server.options)
	w.find = &finder{readJob: w.hub.job, origin: origin, timeout: w.server.options.RequestTimeout, links: links}
	w.handler = newHandler(w.server, backends{
		authenticate: anybody{}, authorize: w,
		find:   w.find,
		leader: &leader{Explainer: &explains{}, leads: closed()},
		jobs:   w.jobs,
	})
	w.api = httptest.NewServer(w.handler.routes())
	t.Cleanup(func() {
		w.server.stop()
		w.api.Close()
		for _, k := range links.of {
			k.link.idle()
		}
	})
	return w
}

func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// reply is what the API said, read to its end.
type reply struct {
	code    int
	header  http.Header
	content string
}

// get asks the server for something of the Job.
func (w *world) get(what string, edits ...func(*http.Request)) (reply, error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.api.URL+apiRoot+"/namespaces/"+namespace+"/jobs/job/"+what, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, edit := range edits {
		edit(request)
	}
	response, err := w.api.Client().Do(request)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return reply{response.StatusCode, response.Header, string(content)}, err
}

// refused expects a Status with a code and a text.
func (w *world) refused(what string, code int, text string) {
	w.t.Helper()
	got, err := w.get(what)
	var s metav1.Status
	if err != nil || json.Unmarshal([]byte(got.content), &s) != nil || s.Kind != "Status" || int(s.Code) != got.code {
		w.t.Fatalf("%s: no Status: %+v %v", what, got, err)
	}
	if got.code != code || !strings.Contains(s.Message, text) {
		w.t.Errorf("%s: %d %q, want %d %q", what, got.code, s.Message, code, text)
	}
}

type anybody struct{}

func (anybody) authenticate(r *http.Request) user.Info {
	return &user.DefaultInfo{Name: "user-" + r.Header.Get("X-Remote-User")}
}

func (w *world) check(ctx context.Context, req *request) error {
	if w.authorize == nil {
		return nil
	}
	return w.authorize.check(ctx, req)
}

// hub is what is read of the hub.
type hub struct {
	mu      sync.Mutex
	objects map[string]client.Object
}

func keyOf(o client.Object, key client.ObjectKey) string { return fmt.Sprintf("%T %s", o, key) }

func (h *hub) put(o client.Object) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.objects[keyOf(o, client.ObjectKeyFromObject(o))] = o
}

func (h *hub) remove(o client.Object) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.objects, keyOf(o, client.ObjectKeyFromObject(o)))
}

func (h *hub) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	found, ok := h.objects[keyOf(into, key)]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, key.Name)
	}
	content, err := json.Marshal(found)
	if err != nil {
		return err
	}
	return json.Unmarshal(content, into)
}

func (h *hub) job(ctx context.Context, key types.NamespacedName) (*batchv1.Job, error) {
	job := &batchv1.Job{}
	return job, h.Get(ctx, key, job)
}

func (h *hub) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return fmt.Errorf("nothing is listed on the hub")
}

func hubJob(edits ...func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "job", UID: hubUID},
		Spec:       batchv1.JobSpec{ManagedBy: ptr.To(v1alpha1.ManagedByDispatcher)},
	}
	hubstate.Set(j, hubstate.Changes{hubstate.Cluster: "w"})
	for _, edit := range edits {
		edit(j)
	}
	return j
}

func workerCluster(ready metav1.ConditionStatus, message string) *v1alpha1.WorkerCluster {
	return &v1alpha1.WorkerCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "w"},
		Spec:       v1alpha1.WorkerClusterSpec{KubeconfigSecret: "w"},
		Status: v1alpha1.WorkerClusterStatus{Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: ready, Reason: v1alpha1.ReasonUnreachable, Message: message,
		}}},
	}
}

// worker is a worker's API server, of which tests say what it answers.
type worker struct {
	server *httptest.Server

	mu      sync.Mutex
	answers map[string]http.HandlerFunc // by path
	headers []http.Header               // of the requests
}

func newWorker(t *testing.T) *worker {
	t.Helper()
	w := &worker{answers: map[string]http.HandlerFunc{}}
	w.server = httptest.NewTLSServer(http.HandlerFunc(w.serve))
	t.Cleanup(func() { w.server.CloseClientConnections(); w.server.Close() })
	w.object("/apis/batch/v1/namespaces/team/jobs/job", mirrorJob())
	w.object("/api/v1/namespaces/team/pods", &corev1.PodList{Items: []corev1.Pod{*pod("job-a")}})
	w.object("/api/v1/namespaces/team/pods/job-a", pod("job-a"))
	return w
}

func (w *worker) serve(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	answer := w.answers[r.URL.Path]
	w.headers = append(w.headers, r.Header.Clone())
	w.mu.Unlock()
	if answer == nil {
		writeError(out, notFound("the worker has no %s", r.URL.Path))
		return
	}
	answer(out, r)
}

// on has the worker answer a path so.
func (w *worker) on(path string, answer http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers[path] = answer
}

func (w *worker) object(path string, o any) {
	w.on(path, func(out http.ResponseWriter, _ *http.Request) { writeJSON(out, http.StatusOK, o) })
}

// heard are the headers of all requests.
func (w *worker) heard() []http.Header {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.headers
}

// secret is the registration.
func (w *worker) secret(version string) *corev1.Secret {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.server.Certificate().Raw})
	kubeconfig, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "x",
		"clusters": []any{map[string]any{"name": "x", "cluster": map[string]any{"server": w.server.URL, "certificate-authority-data": ca}}},
		"users":    []any{map[string]any{"name": "x", "user": map[string]any{"token": "the-manager"}}},
		"contexts": []any{map[string]any{"name": "x", "context": map[string]any{"cluster": "x", "user": "x"}}},
	})
	if err != nil {
		panic(err) // it's made of strings
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "w", ResourceVersion: version},
		Data:       map[string][]byte{v1alpha1.KubeconfigKey: kubeconfig},
	}
}

func mirrorJob(edits ...func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{
		TypeMeta: metav1.TypeMeta{Kind: "Job", APIVersion: "batch/v1"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "job", UID: mirrorUID,
			Labels:      map[string]string{v1alpha1.LabelOrigin: string(origin)},
			Annotations: map[string]string{v1alpha1.AnnotationHubUID: string(hubUID)},
		},
		Spec: batchv1.JobSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{batchv1.ControllerUidLabel: string(mirrorUID)}}},
	}
	hubstate.Set(j, hubstate.Changes{hubstate.Cluster: "w"})
	for _, edit := range edits {
		edit(j)
	}
	return j
}

func pod(name string, edits ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(name),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "job", UID: mirrorUID, Controller: ptr.To(true)}},
		},
		Spec:   corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "main"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, edit := range edits {
		edit(p)
	}
	return p
}
