package frames

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

// eventOf is the event of a watch that shows a Job.
func eventOf(t testing.TB, job *batchv1.Job) []byte {
	t.Helper()
	job.TypeMeta = metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}
	var object bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(job, &object); err != nil {
		t.Fatal(err)
	}
	event, err := (&metav1.WatchEvent{Type: "ADDED", Object: apiruntime.RawExtension{Raw: object.Bytes()}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return event
}

// frame is an event as it's sent.
func frame(event []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(event))), event...) //nolint:gosec // some kilobytes
}

// FuzzWithoutManagers: an event without its managed fields is what client-go decodes, and nothing
// else of it changes.
func FuzzWithoutManagers(f *testing.F) {
	managers := func(fields int) []metav1.ManagedFieldsEntry {
		text := metav1.NewFieldsV1(`{"f:spec":"` + strings.Repeat("x", fields) + `"}`)
		return []metav1.ManagedFieldsEntry{{Manager: "kubectl", FieldsV1: text}, {Manager: "kubelet", Subresource: "status"}}
	}
	meta := metav1.ObjectMeta{Name: "a", UID: "u", Generation: 3, Labels: map[string]string{"a": "b"}, Finalizers: []string{"f"}}
	for _, fields := range []int{0, 100, 1 << 10, 20 << 10} {
		object := &batchv1.Job{ObjectMeta: meta, Status: batchv1.JobStatus{Active: 1}}
		f.Add(eventOf(f, object))
		object.ManagedFields = managers(fields)
		f.Add(eventOf(f, object))
	}
	f.Add([]byte("\x0a\x00\x12\x07\x0a\x05k8s\x00\x12")) // broken
	f.Fuzz(func(t *testing.T, data []byte) {
		was, is := objectIn(data), objectIn(withoutManagers(slices.Clone(data)))
		if was == nil {
			return // client-go refuses it, too
		}
		if is == nil || !equality.Semantic.DeepEqual(was, is) {
			t.Error(cmp.Diff(was, is))
		}
	})
}

// objectIn is the Job in an event, without managed fields; nil: there is none.
func objectIn(data []byte) *batchv1.Job {
	var event metav1.WatchEvent
	var envelope apiruntime.Unknown
	job := &batchv1.Job{}
	if event.Unmarshal(data) != nil || !bytes.HasPrefix(event.Object.Raw, Magic) ||
		envelope.Unmarshal(event.Object.Raw[len(Magic):]) != nil || job.Unmarshal(envelope.Raw) != nil {
		return nil
	}
	job.ManagedFields = nil
	return job
}

// TestManagedFieldsArentPassedOn: client-go is passed all events of a watch, without managed
// fields, and other answers as they are.
func TestManagedFieldsArentPassedOn(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	without := frame(eventOf(t, job))
	job.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: strings.Repeat("kubectl", 1000)}}
	with := frame(eventOf(t, job))
	for contentType, want := range map[string]int{
		"application/vnd.kubernetes.protobuf;stream=watch": 2 * len(without),
		"application/vnd.kubernetes.protobuf":              2 * len(with),
	} {
		answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(bytes.NewReader(slices.Concat(with, with)))}
		Slim(answer)
		passed, err := io.ReadAll(answer.Body)
		if err != nil || len(passed) < want || len(passed) > want+2*4 { // lengths keep their bytes
			t.Errorf("%s: %d bytes are passed, want %d: %v", contentType, len(passed), want, err)
		}
	}
}

// TestAnEventThatBreaksOff: client-go doesn't take such a watch for one that has ended.
func TestAnEventThatBreaksOff(t *testing.T) {
	whole := frame([]byte("event"))
	for n, want := range map[int]error{0: io.EOF, 2: io.ErrUnexpectedEOF, 4: io.ErrUnexpectedEOF, 6: io.ErrUnexpectedEOF} {
		if _, err := (&Reader{From: bytes.NewReader(whole[:n]), MaxBytes: maxHubEvent}).Next(); err != want { //nolint:errorlint // it's that
			t.Errorf("after %d bytes: %v, want %v", n, err, want)
		}
	}
}

// asked calls a function when it's read.
type asked func()

func (f asked) Read([]byte) (int, error) {
	f()
	return 0, io.EOF
}

// TestNoLargeEventIsKept: not even until the next one comes.
func TestNoLargeEventIsKept(t *testing.T) {
	large := frame(make([]byte, 1<<20))
	kept := -1
	events := &Reader{MaxBytes: maxHubEvent}
	chunks := &Chunks{Next: events.Next}
	events.From = io.MultiReader(bytes.NewReader(large), asked(func() { kept = events.read.Cap() + cap(chunks.read) }))
	if _, err := io.Copy(io.Discard, chunks); err != nil || kept != 0 {
		t.Errorf("%d bytes are kept while the next event is waited for, %v", kept, err)
	}
	r := &Reader{From: bytes.NewReader(append(large, frame(nil)...)), MaxBytes: maxHubEvent}
	for range 2 {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if kept := r.read.Cap(); kept > 2*UsualBytes {
		t.Errorf("%d bytes are kept", kept)
	}
	if _, err := (&Reader{From: bytes.NewReader(large), MaxBytes: 1000}).Next(); err != ErrTooLarge { //nolint:errorlint // it's that
		t.Errorf("a large event: %v", err)
	}
}
