package plugin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/streaming/pkg/httpstream/wsstream"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// now is what the plugin's clock says.
var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fakeHub answers as a hub's API server, and the manager behind it, would.
type fakeHub struct {
	t       *testing.T
	server  *httptest.Server
	answers map[string]any // by path
	// container runs a command, instead of exec's own answer; it succeeds.
	container func(command []string, in io.Reader, out io.Writer)
	// session is what exec and attach are refused with.
	session *metav1.Status

	mu    sync.Mutex
	asked []*http.Request
}

const (
	jobPath = "/apis/batch/v1/namespaces/team-a/jobs/shards"
	subPath = "/apis/subresources.jobferry.dev/v1alpha1/namespaces/team-a/jobs/shards/"
)

// newHub is a hub with the Job shards, which runs two Pods in the worker west.
func newHub(t *testing.T) *fakeHub {
	h := &fakeHub{t: t, answers: map[string]any{
		jobPath:                                 hubJob(),
		"/apis/batch/v1/namespaces/team-a/jobs": &batchv1.JobList{Items: []batchv1.Job{*hubJob(), notOurs()}},
		"/api/v1/namespaces/team-a/events":      &corev1.EventList{Items: []corev1.Event{event("Placed", "Placed on worker west")}},
		"/api/v1/namespaces": &corev1.NamespaceList{Items: []corev1.Namespace{
			{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "team-b"}}, {ObjectMeta: metav1.ObjectMeta{Name: "default"}}}},
		"/apis/jobferry.dev/v1alpha1/workerclusters": &v1alpha1.WorkerClusterList{Items: []v1alpha1.WorkerCluster{
			{ObjectMeta: metav1.ObjectMeta{Name: "east"}}, {ObjectMeta: metav1.ObjectMeta{Name: "west"}}}},
		subPath + "pods":   &corev1.PodList{Items: []corev1.Pod{pod(1), pod(0)}},
		subPath + "events": &corev1.EventList{Items: []corev1.Event{eventIn("west", "SuccessfulCreate", "Created pod: shards-0")}},
		subPath + "mirror": hubJob(),
		subPath + "why":    whyWest(),
		subPath + "log":    func(query url.Values) string { return "log of " + query.Encode() + "\n" },
	}}
	h.server = httptest.NewServer(h)
	t.Cleanup(h.server.Close)
	return h
}

func hubJob() *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "shards", UID: "1"},
		Spec:       batchv1.JobSpec{ManagedBy: ptr.To(v1alpha1.ManagedByDispatcher), Completions: ptr.To[int32](2)},
		Status: batchv1.JobStatus{Active: 2, Ready: ptr.To[int32](2),
			Conditions: hubstate.Changes{hubstate.Cluster: "west"}.Conditions(&batchv1.Job{}, nil, time.Time{})},
	}
}

// notOurs is a Job of another controller.
func notOurs() batchv1.Job {
	return batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "not-ours"}, Spec: batchv1.JobSpec{ManagedBy: ptr.To("example.com/other")}}
}

// whyWest is what the manager says of the Job.
func whyWest() *v1alpha1.PlacementExplanation {
	return &v1alpha1.PlacementExplanation{
		TypeMeta:  metav1.TypeMeta{Kind: "PlacementExplanation", APIVersion: "jobferry.dev/v1alpha1"},
		Namespace: "team-a", Name: "shards", PodsWanted: 2, Message: "Placed on west. If it were placed now: west chosen, 1/2 clusters available: 1 cordoned.",
		Workers: []v1alpha1.WorkerExplanation{
			{Name: "west", Placed: true, Answer: v1alpha1.PlacementFitsNow, Message: "all Pods fit now", PodsNow: ptr.To[int64](2), PodsNeeded: ptr.To[int64](2)},
			{Name: "east", Answer: v1alpha1.PlacementExcluded, Reason: "Cordoned", Message: "cordoned"},
		},
	}
}

func pod(index int) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team-a", Name: fmt.Sprintf("shards-%d", index),
			Annotations: map[string]string{batchv1.JobCompletionIndexAnnotation: fmt.Sprint(index), v1alpha1.AnnotationCluster: "west"},
		},
		Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

func event(reason, message string) corev1.Event {
	return corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: "shards.1"},
		InvolvedObject: corev1.ObjectReference{Kind: "Job", Name: "shards", UID: "1"}, Type: "Normal",
		Reason: reason, Message: message, LastTimestamp: metav1.NewTime(now.Add(-time.Minute)),
	}
}

// eventIn is an event of a worker, as the manager returns it.
func eventIn(worker, reason, message string) corev1.Event {
	e := event(reason, message)
	e.Annotations = map[string]string{v1alpha1.AnnotationCluster: worker}
	return e
}

// refuse has a path answered with an error.
func (h *fakeHub) refuse(path string, code int32, reason metav1.StatusReason, message string, details *metav1.StatusDetails) {
	h.answers[path] = refusal(code, reason, message, details)
}

func refusal(code int32, reason metav1.StatusReason, message string, details *metav1.StatusDetails) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: code, Reason: reason, Message: message, Details: details,
	}
}

// ServeHTTP answers.
func (h *fakeHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.asked = append(h.asked, r)
	answer := h.answers[r.URL.Path]
	h.mu.Unlock()
	if h.session == nil && (r.URL.Path == subPath+"exec" || r.URL.Path == subPath+"attach") {
		h.exec(w, r)
		return
	}
	if h.session != nil && answer == nil {
		answer = h.session
	}
	h.answer(w, r, answer)
}

func (h *fakeHub) answer(w http.ResponseWriter, r *http.Request, answer any) {
	w.Header().Set("Content-Type", "application/json")
	switch answer := answer.(type) {
	case nil:
		w.Header().Set("Content-Type", "text/plain")
		http.Error(w, "404 page not found", http.StatusNotFound)
	case http.Handler:
		answer.ServeHTTP(w, r)
	case func(url.Values) string:
		_, _ = io.WriteString(w, answer(r.URL.Query()))
	case func() any:
		if status, refused := answer().(*metav1.Status); refused {
			w.WriteHeader(int(status.Code))
			h.encode(w, status)
			return
		}
		_, _ = io.WriteString(w, "started\n")
	case *metav1.Status:
		w.WriteHeader(int(answer.Code))
		h.encode(w, answer)
	default:
		h.encode(w, answer)
	}
}

func (h *fakeHub) encode(w io.Writer, object any) {
	if err := json.NewEncoder(w).Encode(object); err != nil {
		h.t.Error(err)
	}
}

// exec answers with what it was asked, and what came on standard input; then it ends with the exit
// code 7.
func (h *fakeHub) exec(w http.ResponseWriter, r *http.Request) {
	conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{"v5.channel.k8s.io": {
		Binary:   true,
		Channels: []wsstream.ChannelType{wsstream.ReadChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.ReadChannel},
	}})
	_, streams, err := conn.Open(w, r)
	if err != nil {
		h.t.Error(err)
		return
	}
	defer conn.Close()
	if h.container != nil {
		h.container(r.URL.Query()["command"], streams[0], streams[1])
		_, _ = io.WriteString(streams[3], `{"status":"Success"}`) // it may not be awaited
		return
	}
	fmt.Fprintf(streams[1], "asked: %s\n", r.URL.RawQuery)
	if r.URL.Query().Get("stdin") == "true" {
		line := make([]byte, len("hello\n"))
		if _, err := io.ReadFull(streams[0], line); err != nil {
			h.t.Error(err)
		}
		fmt.Fprintf(streams[1], "in: %s", line)
	}
	fmt.Fprintln(streams[2], "trouble")
	h.encode(streams[3], &metav1.Status{
		Status: metav1.StatusFailure, Reason: "NonZeroExitCode", Message: "command terminated with exit code 7",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "ExitCode", Message: "7"}}},
	})
}

// said is what a run of the plugin came to.
type said struct {
	out, err string
	code     int
}

// run runs the plugin in the namespace team-a.
func (h *fakeHub) run(args ...string) said { return h.with("", args...) }

// kubeconfig is a file with the context hub.
func (h *fakeHub) kubeconfig() string {
	h.t.Helper()
	file := filepath.Join(h.t.TempDir(), "kubeconfig")
	config := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "hub",
		"contexts": [{"name": "hub", "context": {"cluster": "hub", "namespace": "team-a"}}],
		"clusters": [{"name": "hub", "cluster": {"server": %q}}]}`, h.server.URL)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return file
}

func (h *fakeHub) with(input string, args ...string) said {
	h.t.Helper()
	var out, errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(input), Out: &out, ErrOut: &errOut}
	// What stands behind "--" stays there.
	code := Run(h.t.Context(), append([]string{"--kubeconfig", h.kubeconfig()}, args...), streams, clocktesting.NewFakePassiveClock(now))
	return said{out.String(), errOut.String(), code}
}
