package frames

import (
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
)

// Slim removes managed fields from the events of an answer that is a watch in protobuf. It leaves
// other answers as they are.
func Slim(answer *http.Response) {
	if answer.StatusCode == http.StatusOK && answer.Header.Get("Content-Type") == runtime.ContentTypeProtobuf+";stream=watch" {
		answer.Body = &body{answer.Body, Reader{From: answer.Body, MaxBytes: maxHubEvent}, nil, nil}
	}
}

type body struct {
	io.Closer
	events Reader
	read   []byte // and not asked for yet
	ended  error
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if len(b.read) == 0 && b.ended == nil {
		b.read, b.ended = b.events.Next()
	}
	if len(b.read) == 0 {
		return 0, b.ended
	}
	n := copy(p, b.read)
	if b.read = b.read[n:]; len(b.read) == 0 {
		b.read = nil // while the next event is waited for, nothing is kept
	}
	return n, nil
}
