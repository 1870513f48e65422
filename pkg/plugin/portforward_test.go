package plugin

import (
	"io"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
)

// endless is a connection to a worker whose streams have no end.
type endless struct {
	httpstream.Connection
	httpstream.Stream
}

func (endless) Dial(...string) (httpstream.Connection, string, error) { return endless{}, "", nil }

func (endless) CreateStream(http.Header) (httpstream.Stream, error) { return endless{}, nil }

func (endless) Close() error { return nil }

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// A worker's error of a port has no end: client-go would read all of it.
func TestEndlessErrorsOfPorts(t *testing.T) {
	connection, _, err := errorsBounded{endless{}}.Dial()
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]int64{corev1.StreamTypeError: maxPortError, corev1.StreamTypeData: 1 << 20} {
		stream, err := connection.CreateStream(http.Header{http.CanonicalHeaderKey(corev1.StreamType): {kind}})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, io.LimitReader(stream, 1<<20)); n != want || err != nil {
			t.Errorf("%s: %d bytes are read, %v", kind, n, err)
		}
	}
}
