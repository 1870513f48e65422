package link

import (
	"bytes"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
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
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/jobferry/jobferry/pkg/util/decoded"
	"github.com/jobferry/jobferry/pkg/util/frames"
)

func frame(length uint32) string {
	return string(binary.BigEndian.AppendUint32(nil, length))
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
				bound(informerRequest, resp, aHold(), func(err *BoundError) { t.Errorf("in pieces of %d: %v", piece, err) })
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

// repeated is an object in protobuf, of which the fields on a path from the list on are repeated so
// many times in two bytes each: the least that decodes into a struct.
func repeated(t testing.TB, times int, kind string, path ...byte) []byte {
	t.Helper()
	const bytesOf = 2
	content := bytes.Repeat([]byte{path[len(path)-1]<<3 | bytesOf, 0}, times)
	for _, number := range slices.Backward(path[:len(path)-1]) {
		content = append(binary.AppendUvarint([]byte{number<<3 | bytesOf}, uint64(len(content))), content...)
	}
	envelope := apiruntime.Unknown{TypeMeta: apiruntime.TypeMeta{APIVersion: "batch/v1", Kind: kind}, Raw: content}
	raw, err := envelope.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append(slices.Clone(frames.Magic), raw...)
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
	jobs, containers := repeated(t, 1_000_000, "JobList", 2), repeated(t, 1_000_000, "Job", 2, 6, 2, 2)
	for name, row := range map[string]struct{ path, contentType, body string }{
		"empty Jobs":                 {"/x", protobufType, string(jobs)},
		"empty containers":           {"/x", protobufType, string(containers)},
		"empty containers in events": {"/x?watch=true", protobufType + ";stream=watch", event(containers)},
		"empty Jobs in JSON":         {"/x", jsonType, `{"items":[` + strings.Repeat("{},", 500_000) + "{}]}"},
		"nulls in JSON events":       {"/x?watch=true", jsonType, `{"object":[` + strings.Repeat("null,", 500_000) + "null]}"},
	} {
		t.Run(name, func(t *testing.T) {
			resp := answer(t, row.path, row.contentType, row.body, 1<<20) //nolint:bodyclose // answer closes it
			bound(jobRequest, resp, aHold(), func(*BoundError) {})
			var broken *BoundError
			if got, err := io.ReadAll(resp.Body); !errors.As(err, &broken) {
				t.Errorf("%d bytes pass: %v", len(got), err)
			}
		})
	}
}

// jobOf has a template of so many bytes.
func jobOf(number, bytes int) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "tenant", Name: fmt.Sprint("j", number), ResourceVersion: fmt.Sprint(number + 2),
			Labels:      map[string]string{"theirs": strings.Repeat("x", 63)},
			Annotations: map[string]string{"theirs": strings.Repeat("x", bytes/10)},
		},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "c", Args: []string{strings.Repeat("x", bytes)}}},
		}}},
	}
}

// heap is what is in use now.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestLargeObjectsAreAffordable: what an honest API server sends passes, and the estimate isn't
// below what is decoded.
func TestLargeObjectsAreAffordable(t *testing.T) {
	jobs, largest := &batchv1.JobList{}, jobOf(0, 1_500_000)
	jobs.TypeMeta = metav1.TypeMeta{APIVersion: "batch/v1", Kind: "JobList"}
	largest.TypeMeta = metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}
	for i := range 500 {
		job := jobOf(i, 10_000)
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
			bound(informerRequest, resp, aHold(), func(*BoundError) {})
			if got, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(got, data) {
				t.Fatalf("%d of %d bytes pass: %v", len(got), len(data), err)
			}
			before := heap()
			object, _, err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Decode(data, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			took := heap() - before
			runtime.KeepAlive(object)
			if charged := uint64(estimateOf(t, data)); charged < took { //nolint:gosec // it's positive
				t.Errorf("%d bytes are charged, %d are taken", charged, took)
			}
		})
	}
}

func estimateOf(t *testing.T, data []byte) int64 {
	t.Helper()
	var envelope apiruntime.Unknown
	if err := envelope.Unmarshal(data[len(frames.Magic):]); err != nil {
		t.Fatal(err)
	}
	object, err := scheme.Scheme.New(batchv1.SchemeGroupVersion.WithKind(envelope.Kind))
	if err != nil {
		t.Fatal(err)
	}
	size, _ := decoded.Message(reflect.TypeOf(object).Elem(), envelope.Raw, maxDecodedBytes)
	return size
}

// The metadata of objects can be read of a worker.
func TestMetadataIsRead(t *testing.T) {
	all := &metav1.PartialObjectMetadataList{Items: make([]metav1.PartialObjectMetadata, 1)}
	all.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadataList"))
	all.APIVersion = "meta.k8s.io/v1"
	all.Items[0].Annotations = map[string]string{"a": strings.Repeat("x", 2<<10)}
	var out bytes.Buffer
	if err := protobuf.NewSerializer(metadata, metadata).Encode(all, &out); err != nil {
		t.Fatal(err)
	}
	if size, err := checkObject(out.Bytes()); err != nil || size > 64<<10 {
		t.Errorf("%d bytes, %v", size, err)
	}
}

// client-go decodes an answer in protobuf without a Content-Type, and knows YAML besides: no bound
// would count what that becomes.
func TestOnlyTypesWithBoundsAreDecoded(t *testing.T) {
	jobs := string(repeated(t, 100_000, "JobList", 2))
	for _, contentType := range []string{"", "application/yaml", "application/cbor", "text/html", protobufType + "; =", "Application/Yaml"} {
		for _, status := range []int{http.StatusOK, http.StatusInternalServerError} {
			answersCheaply(t, contentType, jobs, status)
		}
	}
}

// client-go takes an answer in protobuf for what it has asked for if the version can't be read, or
// the kind is left out.
func TestAnswersOfUnreadableVersionsArentDecoded(t *testing.T) {
	for _, version := range []string{"a/b/c", "//", "v1/", "batch/v1", "v1", ""} {
		for _, kind := range []string{"", "Job", "JobList", "PodList"} {
			envelope := apiruntime.Unknown{TypeMeta: apiruntime.TypeMeta{APIVersion: version, Kind: kind}, Raw: bytes.Repeat([]byte{2<<3 | 2, 0}, 100_000)}
			raw, err := envelope.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			for _, status := range []int{http.StatusOK, http.StatusInternalServerError} {
				answersCheaply(t, protobufType, string(frames.Magic)+string(raw), status)
			}
		}
	}
}

// What is sent to workers counts on their answers in JSON having so many values.
func TestAnswersOfManyValuesAreRead(t *testing.T) {
	resp := answer(t, "/x", jsonType, `{"kind":"Job","spec":[`+strings.Repeat(`"x",`, maxElements-100)+`"x"]}`, 1<<20)
	bound(jobRequest, resp, aHold(), func(err *BoundError) { t.Error(err) })
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Error(err)
	}
	_ = resp.Body.Close()
}

// answersCheaply fails if an answer that would become large is decoded.
func answersCheaply(t *testing.T, contentType, content string, status int) {
	t.Helper()
	client, err := rest.RESTClientForConfigAndClient(&rest.Config{
		Host: AnyHost, APIPath: "/apis", ContentConfig: rest.ContentConfig{
			GroupVersion: &batchv1.SchemeGroupVersion, NegotiatedSerializer: scheme.Codecs.WithoutConversion(), ContentType: protobufType,
		},
	}, &http.Client{Transport: roundTripper(func(req *http.Request) *http.Response {
		resp := answer(t, "/x", contentType, content, 1<<20)
		resp.StatusCode, resp.Request = status, req
		bound(jobRequest, resp, aHold(), func(*BoundError) {})
		return resp
	})})
	if err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func(rest.Result) error{
		"Get":  func(r rest.Result) error { _, err := r.Get(); return err },
		"Into": func(r rest.Result) error { return r.Into(&batchv1.JobList{}) },
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err = read(client.Get().Resource("jobs").Do(t.Context()))
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; err == nil || took > 8<<20 {
			t.Errorf("%.60q as %q with %d, %s: %v, and %d MiB were allocated", content, contentType, status, name, err, took>>20)
		}
	}
}

// roundTripper is a transport that sends nothing.
type roundTripper func(*http.Request) *http.Response

func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return r(req), nil }

// Each status would be a series of the metrics, and HTTP/2 has any number.
func TestOnlyStatusesOfHTTP(t *testing.T) {
	for status, want := range map[int]bool{101: true, 200: true, 599: true, 0: false, 600: false, 1 << 40: false, -1: false} {
		to := &Transport{server: &url.URL{Scheme: "https", Host: "w"}, send: roundTripper(func(req *http.Request) *http.Response {
			return &http.Response{StatusCode: status, Request: req, Body: http.NoBody, Header: http.Header{}}
		})}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, AnyHost+"/version", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := to.RoundTrip(req)
		if (err == nil) != want {
			t.Errorf("%d: %v", status, err)
		}
		if err == nil {
			resp.Body.Close()
		}
	}
}

// An error is remembered, of each kind of object that is watched: it has the size of one.
func TestErrorsAreSmall(t *testing.T) {
	inProtobuf := func(apiVersion string) string {
		return string(inProtobuf(t, &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: "Status"}, Message: "no"}))
	}
	large := `{"kind":"Status","apiVersion":"v1","message":"` + strings.Repeat("x", 100<<10) + `"}`
	for name, row := range map[string]struct {
		contentType, body string
		small             bool
		class             requestClass
	}{
		"a refusal":           {jsonType, `{"kind":"Status","apiVersion":"v1","message":"no","details":{"causes":[{"field":"x"}]}}`, true, informerRequest},
		"in protobuf":         {protobufType, inProtobuf("v1"), true, informerRequest},
		"in any group":        {protobufType, inProtobuf("meta.k8s.io/v1"), true, informerRequest},
		"a long message":      {jsonType, large, false, informerRequest},
		"what was written":    {jsonType, large, true, jobRequest},
		"a proxy's in JSON":   {jsonType, `{"message":"no","traceID":"7e10345"}`, true, probeRequest},
		"Jobs in place of it": {protobufType, string(repeated(t, 1000, "JobList", 2)), false, probeRequest},
	} {
		resp := answer(t, "/x", row.contentType, row.body, 1<<20) //nolint:bodyclose // answer closes it
		resp.StatusCode = http.StatusInternalServerError
		bound(row.class, resp, aHold(), func(*BoundError) {})
		if _, err := io.ReadAll(resp.Body); (err == nil) != row.small || err != nil && !strings.Contains(err.Error(), "64 KiB, or 256 KiB when") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A version has no quantities, whatever its texts look like.
func TestVersionsHaveNoQuantities(t *testing.T) {
	for path, passes := range map[string]bool{"/version": true, "/k8s/clusters/a/version": true, "/api/v1/namespaces/kube-system": false} {
		resp := answer(t, path, jsonType, `{"gitVersion":"v1.36.0","gitCommit":"7e10345"}`, 1<<20) //nolint:bodyclose // answer closes it
		bound(probeRequest, resp, aHold(), func(*BoundError) {})
		if _, err := io.ReadAll(resp.Body); (err == nil) != passes {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// endless repeats a text, and counts what is read.
type endless struct {
	text string
	read int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.text)
	e.read += n
	return n, nil
}

// styled is as in a load balancer's error page: nothing decodes it, and it looks much like JSON.
const styled = "a.b:hover,c.d{margin:0 auto;font:12px Arial,sans-serif}[[[[\n"

// TestErrorPages: one of a usual size breaks no bound, and neither does one of any size where no
// API server answers; of that, no more is read than is kept.
func TestErrorPages(t *testing.T) {
	for _, class := range []requestClass{probeRequest, jobRequest, informerRequest} {
		for _, path := range []string{"/x", "/x?watch=true"} {
			for _, status := range []int{http.StatusFound, http.StatusNotFound, http.StatusInternalServerError, http.StatusBadGateway} {
				for _, size := range []int{0, 4 << 10, maxErrorBytes, maxErrorBytes + 1, 1 << 40} {
					page := &endless{text: styled}
					resp := answer(t, path, "text/html", "", 1) //nolint:bodyclose // answer closes it
					resp.StatusCode, resp.Body = status, io.NopCloser(io.LimitReader(page, int64(size)))
					bound(class, resp, aHold(), func(*BoundError) {})
					got, err := io.ReadAll(resp.Body)
					if err != nil || len(got) != min(size, maxErrorBytes) || page.read > maxErrorBytes {
						t.Errorf("class %d, %s: of %d bytes with %d, %d pass, %d are read: %v", class, path, size, status, len(got), page.read, err)
					}
				}
			}
		}
	}
}

// closing tells whether it was closed.
type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}

// client-go leaves events open that it can't decode, and what was received of them stays in memory.
func TestEventsInAnotherFormatAreClosed(t *testing.T) {
	for contentType, want := range map[string]bool{"": false, "text/html": false, "application/yaml": false, jsonType: true, protobufType + ";stream=watch": true} {
		body := &closing{Reader: strings.NewReader("")}
		to := &Transport{server: &url.URL{Scheme: "https", Host: "w"}, send: roundTripper(func(req *http.Request) *http.Response {
			return &http.Response{StatusCode: http.StatusOK, Request: req, Body: body, Header: http.Header{"Content-Type": {contentType}}}
		})}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, AnyHost+"/api/v1/nodes?watch=true", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := to.RoundTrip(req); (err == nil) != want || body.closed == want { //nolint:bodyclose // it's looked at
			t.Errorf("%q: %v, closed: %t", contentType, err, body.closed)
		}
	}
}

// What a worker sends on its watches, and nobody reads yet, takes little memory.
func TestLittleIsReadAhead(t *testing.T) {
	const watches = 5
	var written atomic.Int64
	var sending sync.WaitGroup
	sending.Add(watches)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer sending.Done()
		w.Header().Set("Content-Type", jsonType)
		for piece := make([]byte, 64<<10); ; written.Add(int64(len(piece))) {
			if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
				t.Error(err)
			}
			if _, err := w.Write(piece); err != nil {
				return // nobody takes it
			}
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	transport := transportTo(t, server, server.Certificate().Raw)
	for range watches {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, AnyHost+"/api/v1/nodes?watch=true", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := transport.RoundTrip(req)
		if err != nil || resp.ProtoMajor != 2 {
			t.Fatalf("%v, %v", resp, err)
		}
		t.Cleanup(func() { resp.Body.Close() })
	}
	sending.Wait()
	// The server and the sockets have their own buffers.
	if n := written.Load(); n > watches*maxReadAheadOfOne+10<<20 {
		t.Errorf("%d KiB were sent", n>>10)
	}
}

// transportTo leads to a server of which it trusts a certificate.
func transportTo(t *testing.T, server *httptest.Server, trusted []byte) *Transport {
	t.Helper()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: trusted})
	kubeconfig := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: server.URL, CertificateAuthorityData: ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: "t"}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}
	text, err := clientcmd.Write(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := NewTransport(text, TransportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.revoke)
	return transport
}
