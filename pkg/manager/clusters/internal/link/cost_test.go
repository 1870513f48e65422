package link

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// What an answer becomes is bounded, whatever it is: ten times what it may take in memory is
// allocated, as slices grow.
func FuzzCost(f *testing.F) {
	for _, kind := range []string{"Pod", "Node", "ResourceSlice", "Unknown"} {
		version := map[string]string{"ResourceSlice": "resource.k8s.io/v1"}[kind]
		if version == "" {
			version = "v1"
		}
		f.Add(`{"kind":"`+kind+`List","apiVersion":"`+version+`","items":[{}`, ",{}", "]}")
		f.Add(`{"kind":"`+kind+`","apiVersion":"`+version+`","spec":{"containers":[{}`, ",{}", "]}}")
		f.Add(`{"kind":"`+kind+`","apiVersion":"`+version+`","status":{"capacity":{"cpu":"1e9999"`, `,"cpu":"1"`, "}}}")
		f.Add(`{"kind":"`+kind+`","apiVersion":"`+version+`","x":`, "[", "")
	}
	f.Add(`{"kind":"PodList","apiVersion":"v1","items":[`+strings.Repeat("{},", maxElements-100)+"{}]}", "", "")
	f.Add(string(repeated(f, 100_000, "JobList", 2)), "", "")
	f.Add(string(repeated(f, 10_000, "Job", 2, 6, 2, 2)), "", "")
	costtest.Check(f, 512<<10, 500, func(text string) {
		for _, contentType := range []string{jsonType, protobufType} {
			req, err := http.NewRequest(http.MethodGet, AnyHost+"/api/v1/pods", http.NoBody)
			if err != nil {
				panic(err)
			}
			resp := &http.Response{
				StatusCode: http.StatusOK, Request: req, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(strings.NewReader(text)),
			}
			bound(informerRequest, resp, aHold(), func(*BoundError) {})
			if data, err := io.ReadAll(resp.Body); err == nil {
				info, _ := apiruntime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), contentType)
				_, _ = apiruntime.Decode(info.Serializer, data) // whatever it is
			}
			_ = resp.Body.Close()
		}
	})
}

// thenAsked is read until its end, and then calls a function.
type thenAsked struct {
	io.Reader
	ended func()
}

func (r thenAsked) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if n == 0 && err != nil {
		r.ended()
	}
	return n, err
}

// TestNothingIsKeptOfALargeEvent: a worker may send one on each watch, and nothing after it.
func TestNothingIsKeptOfALargeEvent(t *testing.T) {
	text := strings.Repeat("x", maxEventBytes-1000)
	for contentType, event := range map[string]string{
		jsonType: `{"object":"` + text + `"}`, protobufType + ";stream=watch": frame(uint32(len(text))) + text,
	} {
		var before, waiting uint64
		resp := answer(t, "/x?watch=true", contentType, "", 1) //nolint:bodyclose // answer closes it
		resp.Body = io.NopCloser(thenAsked{strings.NewReader(event), func() { waiting = heap() }})
		bound(informerRequest, resp, aHold(), func(err *BoundError) { t.Error(err) })
		before = heap()
		if n, err := io.Copy(struct{ io.Writer }{io.Discard}, resp.Body); err != nil || int(n) != len(event) {
			t.Errorf("%s: %d bytes pass: %v", contentType, n, err)
		}
		if waiting > before+1<<20 {
			t.Errorf("%s: %d KiB are kept while the next event is waited for", contentType, (waiting-before)>>10)
		}
	}
}

// TestNoWatchKeepsALargeEvent: nor does what decodes the events of a watch. One in JSON, of which
// client-go keeps some, ends it.
func TestNoWatchKeepsALargeEvent(t *testing.T) {
	job := jobOf(0, 3<<20)
	job.TypeMeta = metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}
	text, err := json.Marshal(map[string]any{"type": "ADDED", "object": job})
	if err != nil {
		t.Fatal(err)
	}
	var object bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(job, &object); err != nil {
		t.Fatal(err)
	}
	event, err := (&metav1.WatchEvent{Type: "ADDED", Object: apiruntime.RawExtension{Raw: object.Bytes()}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	job = nil
	for contentType, sent := range map[string]string{jsonType: string(text), protobufType + ";stream=watch": frame(uint32(len(event))) + string(event)} {
		taken, waits, before := make(chan struct{}), make(chan uint64, 2), heap()
		client, err := rest.RESTClientForConfigAndClient(restConfig(batchv1.SchemeGroupVersion), &http.Client{Transport: roundTripper(func(req *http.Request) *http.Response {
			resp := answer(t, "/x", contentType, "", 1)
			resp.Body = io.NopCloser(thenAsked{strings.NewReader(sent), func() {
				<-taken
				waits <- heap()
			}})
			resp.Request = req
			bound(informerRequest, resp, aHold(), func(err *BoundError) { t.Error(err) })
			return resp
		})})
		if err != nil {
			t.Fatal(err)
		}
		watch, err := client.Get().Resource("jobs").VersionedParams(&metav1.ListOptions{Watch: true}, metav1.ParameterCodec).Watch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got, is := (<-watch.ResultChan()).Object.(*batchv1.Job); !is || got.Name != "j0" {
			t.Errorf("%s: got %T", contentType, got)
		}
		close(taken)
		if _, open := <-watch.ResultChan(); open {
			t.Errorf("%s: another event", contentType)
		}
		if contentType == jsonType {
			waits <- 0
		}
		if waiting := <-waits; waiting > before+1<<20 {
			t.Errorf("%s: %d KiB are kept while the next event is waited for", contentType, (waiting-before)>>10)
		}
		watch.Stop()
	}
}
