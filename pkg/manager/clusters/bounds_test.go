package clusters

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// adversary writes answers without an end, and counts what is read of them.
type adversary struct{ sent atomic.Int64 }

const longAnswer = 300 << 20

// write sends the head, and then the filling until it isn't read any more or 300 MiB are.
func (a *adversary) write(contentType, head, filling string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		chunk := []byte(strings.Repeat(filling, 64<<10/len(filling)))
		n, err := io.WriteString(w, head)
		for sent := n; err == nil && sent < longAnswer; sent += n {
			n, err = w.Write(chunk)
			a.sent.Add(int64(n))
		}
	}
}

// zippedSpaces is what 300 MiB of spaces become.
var zippedSpaces = sync.OnceValue(func() []byte {
	var zipped bytes.Buffer
	to := gzip.NewWriter(&zipped)
	for range longAnswer >> 20 {
		_, _ = to.Write(bytes.Repeat([]byte(" "), 1<<20)) // a buffer takes all
	}
	_ = to.Close()
	return zipped.Bytes()
})

// zipBomb sends them.
func zipBomb(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Encoding", "gzip")
	_, _ = w.Write(zippedSpaces()) // fails with the connection
}

func frame(length uint32) string {
	return string(binary.BigEndian.AppendUint32(nil, length))
}

// TestAWorkerWhoseAnswersHaveNoEnd has one of two workers answer without an end. It's not Ready
// with a reason, little of the answer is read, and the other worker stays Ready. When it answers as
// it should, it's Ready again.
func TestAWorkerWhoseAnswersHaveNoEnd(t *testing.T) {
	var a adversary
	zippedSpaces()
	for name, row := range map[string]struct {
		kind   string
		answer http.HandlerFunc
		reason string
		says   string
		// reads is what may be read of it before the first time that nothing is sent to the worker,
		// without what the network holds.
		reads int64
	}{
		"probe":               {"get kube-system", a.write(jsonType, "", " "), v1alpha1.ReasonAnswerTooLarge, "GET /c/api/v1/namespaces/kube-system is larger than 1 MiB", maxProbeBytes},
		"version":             {"get version", a.write(jsonType, "", " "), v1alpha1.ReasonAnswerTooLarge, "GET /c/version is larger than 1 MiB", maxProbeBytes},
		"probe, compressed":   {"get kube-system", zipBomb, v1alpha1.ReasonAnswerEncoded, `Content-Encoding "gzip"`, 0},
		"event":               {"watch jobs", a.write(jsonType, `{"type":"ADDED","object":{"metadata":{"name":"`, "x"), v1alpha1.ReasonAnswerTooLarge, "an event of the answer", maxEventBytes},
		"event in protobuf":   {"watch jobs", a.write(protobufType+";stream=watch", frame(1<<31), "x"), v1alpha1.ReasonAnswerTooLarge, "an event of the answer", maxEventBytes},
		"nothing but spaces":  {"watch jobs", a.write(jsonType, "", " "), v1alpha1.ReasonAnswerTooLarge, "an event of the answer", maxEventBytes},
		"event of many lines": {"watch jobs", a.write(jsonType, "{", "\n"), v1alpha1.ReasonAnswerTooLarge, "an event of the answer", maxEventBytes},
		"quantity that hangs": {"watch nodes", a.write(jsonType, `{"type":"ADDED","object":{"kind":"Node","apiVersion":"v1","metadata":{"name":"n"},"status":{"allocatable":{"cpu":"1e999999999"}}}}`, " "), v1alpha1.ReasonAnswerTooLarge, "/api/v1/nodes has a quantity of more than 64 characters", maxEventBytes},
		"event of a Node":     {"watch nodes", a.write(jsonType, "{", " "), v1alpha1.ReasonAnswerTooLarge, "/api/v1/nodes", maxEventBytes},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.registry.options.ProbeTimeout = 10 * time.Second // the machine is busy
			other := w.register("other", w.server.Add("d", "uid-2", "t").Kubeconfig("t"))
			w.untilState(other, Ready, v1alpha1.ReasonConnected)
			c := w.server.Add("c", "uid", "t")
			before := a.sent.Load()
			c.Answer(row.kind, row.answer)
			worker := w.register("w1", c.Kubeconfig("t"))
			view := w.untilState(worker, Disconnected, row.reason)
			if !strings.Contains(view.Message, row.says) {
				t.Errorf("says: %s", view.Message)
			}
			const inNetwork = 16 << 20
			if read := a.sent.Load() - before; read > 2*row.reads+inNetwork {
				t.Errorf("%d bytes were read", read)
			}
			if other.View().State != Ready {
				t.Errorf("the other worker: %+v", other.View())
			}
			c.Answer(row.kind, nil)
			w.untilState(worker, Ready, v1alpha1.ReasonConnected)
		})
	}
}

// TestALargeHeader: it isn't held, though the rest of the answer is as it should be.
func TestALargeHeader(t *testing.T) {
	w := newWorld(t)
	c := w.server.Add("c", "uid", "t")
	c.Answer("get kube-system", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		w.Header().Set("Filling", strings.Repeat("x", 128<<10))
		fmt.Fprint(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"uid"}}`)
	})
	worker := w.register("w1", c.Kubeconfig("t"))
	w.until("it's refused", func() bool { return worker.View().State == Disconnected })
	c.Answer("get kube-system", nil)
	w.untilState(worker, Ready, v1alpha1.ReasonConnected)
}

// TestAListWithoutAnEnd: pages are asked for with fewer objects each time, at last with one.
func TestAListWithoutAnEnd(t *testing.T) {
	w := newWorld(t)
	c := w.server.Add("c", "uid", "t")
	var a adversary
	c.Answer("watch jobs", http.NotFound) // so that it's listed
	c.Answer("get jobs", a.write("application/json", `{"kind":"JobList","apiVersion":"batch/v1","items":[`, `{"metadata":{"name":"j"}},`))
	worker := w.register("w1", c.Kubeconfig("t"))
	view := w.untilState(worker, Disconnected, v1alpha1.ReasonAnswerTooLarge)
	if want := "GET /c/apis/batch/v1/jobs is larger than 16 MiB"; !strings.Contains(view.Message, want) {
		t.Errorf("says: %s", view.Message)
	}
	if n := len(worker.Mirrors()); n != 0 {
		t.Errorf("%d mirrors are known", n)
	}
}

// TestAReadWithoutAnEnd: a read on behalf of a Job fails, and the worker isn't Ready from then on.
func TestAReadWithoutAnEnd(t *testing.T) {
	w := newWorld(t)
	w.registry.options.RequestTimeout = 30 * time.Second // the machine is busy, and the bound comes first
	c := w.server.Add("c", "uid", "t")
	worker := w.register("w1", c.Kubeconfig("t"))
	w.untilState(worker, Ready, v1alpha1.ReasonConnected)
	var a adversary
	c.Answer("get j", a.write("application/json", "", " "))
	err := worker.Client().Get(context.Background(), client.ObjectKey{Namespace: "n", Name: "j"}, &batchv1.Job{})
	var broken *BoundError
	if !errors.As(err, &broken) {
		t.Fatalf("the read: %v", err)
	}
	w.untilState(worker, Disconnected, v1alpha1.ReasonAnswerTooLarge)
}

// TestRedirects has a worker redirect each of the clients to another server, which must not hear of
// it, the token least of all.
func TestRedirects(t *testing.T) {
	var heard atomic.Int64
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { heard.Add(1) }))
	t.Cleanup(elsewhere.Close)
	for _, code := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			w := newWorld(t)
			c := w.server.Add("c", "uid", "t")
			redirect := func(to string) http.HandlerFunc {
				return func(w http.ResponseWriter, req *http.Request) { http.Redirect(w, req, to, code) }
			}
			c.Answer("get j", redirect(elsewhere.URL+"/x"))
			c.Answer("get k", redirect("/c/followed"))
			c.Answer("watch nodes", redirect(elsewhere.URL+"/x"))
			c.Answer("get nodes", redirect("/c/followed"))
			worker := w.register("w1", c.Kubeconfig("t"))
			w.untilState(worker, Ready, v1alpha1.ReasonConnected)
			for _, name := range []string{"j", "k"} {
				err := worker.Client().Get(context.Background(), client.ObjectKey{Namespace: "n", Name: name}, &batchv1.Job{})
				if err == nil {
					t.Errorf("the read of %s succeeded", name)
				}
			}
			w.until("nodes are listed", func() bool { return c.Requests("get nodes") > 0 })
			c.Answer("get kube-system", redirect(elsewhere.URL+"/x"))
			w.untilState(worker, Disconnected, v1alpha1.ReasonUnreachable)
			if n := heard.Load(); n != 0 || c.Requests("get followed") != 0 || c.Requests("get x") != 0 {
				t.Errorf("redirects were followed: %d, %d, %d", n, c.Requests("get followed"), c.Requests("get x"))
			}
		})
	}
}

func TestQuarantinesGrow(t *testing.T) {
	var q quarantine
	now, cause := time.Unix(0, 0), &BoundError{}
	for i, want := range []time.Duration{10, 20, 40, 80, 150, 150} {
		q.begin(cause, now, 10*time.Second)
		if q.opens.Sub(now) != want*time.Second || q.ends.Sub(now) != 2*want*time.Second {
			t.Errorf("quarantine %d opens after %s, want %ds", i, q.opens.Sub(now), want)
		}
		now = q.ends
	}
	now = now.Add(maxQuarantine + time.Second)
	if q.begin(cause, now, 10*time.Second); q.opens.Sub(now) != 10*time.Second {
		t.Errorf("after a good time it opens after %s", q.opens.Sub(now))
	}
}

// answer is one of a worker's, of which so many bytes come at a time.
func answer(t *testing.T, path, contentType, body string, piece int) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, AnyHost+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp := &http.Response{
		StatusCode: http.StatusOK, Request: req, Header: http.Header{"Content-Type": {contentType}},
		Body: io.NopCloser(pieces{strings.NewReader(body), piece}),
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

type pieces struct {
	io.Reader
	size int
}

func (p pieces) Read(b []byte) (int, error) { return p.Reader.Read(b[:min(p.size, len(b))]) }

const (
	jsonType     = "application/json"
	protobufType = "application/vnd.kubernetes.protobuf"
)

// TestManySmallEventsAreNoLargeOne has long watches of small events pass as they are, in pieces of
// any size.
func TestManySmallEventsAreNoLargeOne(t *testing.T) {
	object := `{"type":"ADDED","object":{"a":["}\"",{"b":"\\"}]}}` + "\n"
	for contentType, event := range map[string]string{jsonType: object, protobufType + ";stream=watch": frame(uint32(len(object))) + object} {
		t.Run(contentType, func(t *testing.T) {
			stream := strings.Repeat(event, 2*maxEventBytes/len(event))
			for _, piece := range []int{1, 3, 4096, len(stream)} {
				resp := answer(t, "/x?watch=true", contentType, stream, piece) //nolint:bodyclose // answer closes it
				bound(informerRequest, resp, func(err *BoundError) { t.Errorf("in pieces of %d: %v", piece, err) })
				if got, err := io.ReadAll(resp.Body); err != nil || string(got) != stream {
					t.Errorf("in pieces of %d: %d bytes pass, want %d: %v", piece, len(got), len(stream), err)
				}
			}
		})
	}
}

// inProtobuf encodes an object as an API server does.
func inProtobuf(t *testing.T, object apiruntime.Object) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(object, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// repeated is an object in protobuf, of which the fields on a path from the list on are repeated in
// two bytes each: the least that decodes into a struct.
func repeated(t *testing.T, kind string, path ...byte) []byte {
	t.Helper()
	const bytesOf = 2
	content := bytes.Repeat([]byte{path[len(path)-1]<<3 | bytesOf, 0}, 1_000_000)
	for _, number := range slices.Backward(path[:len(path)-1]) {
		content = append(binary.AppendUvarint([]byte{number<<3 | bytesOf}, uint64(len(content))), content...)
	}
	envelope := apiruntime.Unknown{TypeMeta: apiruntime.TypeMeta{APIVersion: "batch/v1", Kind: kind}, Raw: content}
	raw, err := envelope.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append(slices.Clone(magic), raw...)
}

// TestAFewBytesThatBecomeMany: two megabytes that would become gigabytes aren't decoded.
func TestAFewBytesThatBecomeMany(t *testing.T) {
	event := func(raw []byte) string {
		content, err := (&metav1.WatchEvent{Type: "ADDED", Object: apiruntime.RawExtension{Raw: raw}}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return frame(uint32(len(content))) + string(content) //nolint:gosec // a few megabytes
	}
	jobs, containers := repeated(t, "JobList", 2), repeated(t, "Job", 2, 6, 2, 2)
	for name, row := range map[string]struct{ path, contentType, body string }{
		"empty Jobs":                 {"/x", protobufType, string(jobs)},
		"empty containers":           {"/x", protobufType, string(containers)},
		"empty containers in events": {"/x?watch=true", protobufType + ";stream=watch", event(containers)},
		"empty Jobs in JSON":         {"/x", jsonType, `{"items":[` + strings.Repeat("{},", 500_000) + "{}]}"},
		"nulls in JSON events":       {"/x?watch=true", jsonType, `{"object":[` + strings.Repeat("null,", 500_000) + "null]}"},
	} {
		t.Run(name, func(t *testing.T) {
			resp := answer(t, row.path, row.contentType, row.body, 1<<20) //nolint:bodyclose // answer closes it
			bound(jobRequest, resp, func(*BoundError) {})
			var broken *BoundError
			if got, err := io.ReadAll(resp.Body); !errors.As(err, &broken) {
				t.Errorf("%d bytes pass: %v", len(got), err)
			}
		})
	}
}

// TestLargeObjectsAreAffordable: what an honest API server sends passes, and the estimate isn't
// below what is decoded.
func TestLargeObjectsAreAffordable(t *testing.T) {
	jobs, largest := &batchv1.JobList{}, forged(0, 1_500_000)
	jobs.TypeMeta = metav1.TypeMeta{APIVersion: "batch/v1", Kind: "JobList"}
	largest.TypeMeta = metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}
	for i := range pageSize {
		job := forged(i, 10_000)
		container := &job.Spec.Template.Spec.Containers[0]
		container.Env = slices.Repeat([]corev1.EnvVar{{Name: "n", Value: "v"}}, 20)
		container.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		jobs.Items = append(jobs.Items, *job)
	}
	for name, object := range map[string]apiruntime.Object{
		"a page of Jobs": jobs, "a Job of the greatest size": largest,
	} {
		t.Run(name, func(t *testing.T) {
			data := inProtobuf(t, object)
			resp := answer(t, "/x", protobufType, string(data), 1<<20) //nolint:bodyclose // answer closes it
			bound(informerRequest, resp, func(*BoundError) {})
			if got, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(got, data) {
				t.Fatalf("%d of %d bytes pass: %v", len(got), len(data), err)
			}
			before := heap()
			decoded, _, err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Decode(data, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			took := heap() - before
			runtime.KeepAlive(decoded)
			left := estimateOf(t, data)
			if charged := uint64(maxDecodedBytes - left); charged < took { //nolint:gosec // it's positive
				t.Errorf("%d bytes are charged, %d are taken", charged, took)
			}
		})
	}
}

func estimateOf(t *testing.T, data []byte) int64 {
	t.Helper()
	var envelope apiruntime.Unknown
	if err := envelope.Unmarshal(data[len(magic):]); err != nil {
		t.Fatal(err)
	}
	object, err := scheme.Scheme.New(batchv1.SchemeGroupVersion.WithKind(envelope.Kind))
	if err != nil {
		t.Fatal(err)
	}
	e := estimate{left: maxDecodedBytes}
	e.message(reflect.TypeOf(object).Elem(), envelope.Raw)
	return e.left
}
