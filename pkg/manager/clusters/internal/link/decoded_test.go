package link

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/jobferry/jobferry/pkg/util/costtest"
	"github.com/jobferry/jobferry/pkg/util/decoded"
	"github.com/jobferry/jobferry/pkg/util/frames"
)

// FuzzPlain: what is read without the generated code is what that reads, and so what is checked is
// what client-go decodes.
func FuzzPlain(f *testing.F) {
	field := func(number byte, content string) string { // shorter than 128 bytes
		return string([]byte{number<<3 | 2, byte(len(content))}) + content
	}
	meta := field(1, "batch/v1") + field(2, "Job")
	plainly := field(1, meta) + field(2, "content") + field(3, "") + field(4, "")
	f.Add([]byte(plainly))
	f.Add([]byte(plainly + field(1, field(1, "v1")))) // another version of the same kind
	f.Add([]byte(plainly + field(2, "other")))        // the last content counts
	f.Add([]byte(plainly + field(5, "unknown")))      // a field that is skipped
	f.Add([]byte(field(1, meta+field(1, "v1"))))      // likewise, inside
	f.Add([]byte(field(1, "ADDED") + field(2, field(1, "object"))))
	f.Add([]byte(field(2, field(1, "object")) + field(2, ""))) // the content of the first stays
	f.Add([]byte(field(2, field(1, "object")) + "\x12\x7f"))   // broken
	f.Add([]byte{1<<3 | 2, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02})
	f.Fuzz(func(t *testing.T, data []byte) {
		var want apiruntime.Unknown
		err := want.Unmarshal(data)
		if got, ok := unwrap(data); ok != (err == nil) {
			t.Errorf("an envelope is read: %t, by the generated code: %v", ok, err)
		} else if ok && (got.TypeMeta != want.TypeMeta || !bytes.Equal(got.Raw, want.Raw)) {
			t.Errorf("%v", cmp.Diff(want, got))
		}
		var event metav1.WatchEvent
		var kind, object, raw []byte
		switch ok := decoded.Plain(data, &kind, &object) && decoded.Plain(object, &raw); {
		case !ok:
		case event.Unmarshal(data) != nil:
			t.Error("an event is read that the generated code refuses")
		case event.Type != string(kind) || !bytes.Equal(event.Object.Raw, raw):
			t.Errorf("%q %q, by the generated code %q %q", kind, raw, event.Type, event.Object.Raw)
		}
	})
}

// TestEventsPassWithoutCopies: of events that come one after another the manager makes no copies
// beside client-go's.
func TestEventsPassWithoutCopies(t *testing.T) {
	event := func(size int) []byte {
		job := &batchv1.Job{
			TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": strings.Repeat("x", size)}},
		}
		content, err := (&metav1.WatchEvent{Type: "ADDED", Object: apiruntime.RawExtension{Raw: inProtobuf(t, job)}}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return slices.Concat([]byte(frame(uint32(len(content)))), content) //nolint:gosec // a few kilobytes
	}
	const events = 100
	next := eventsOf(bytes.NewReader(bytes.Repeat(event(8<<10), events)))
	if cost := costtest.Of(func() {
		for range events {
			if _, _, err := next(); err != nil {
				t.Error(err)
			}
		}
	}); cost > events*512+2*frames.UsualBytes {
		t.Errorf("%d events of 8 KiB allocate %d bytes", events, cost)
	}
}
