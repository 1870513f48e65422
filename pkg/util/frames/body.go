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
		events := &Reader{From: answer.Body, MaxBytes: maxHubEvent}
		answer.Body = struct {
			io.Reader
			io.Closer
		}{&Chunks{Next: events.Next}, answer.Body}
	}
}

// Chunks reads what a function returns, one chunk after another. It keeps nothing of a chunk that
// was read while it waits for the next one.
type Chunks struct {
	// Next returns a chunk, which is valid until the next call, or an error.
	Next func() ([]byte, error)

	read  []byte // and not asked for yet
	ended error
}

// Read implements io.Reader.
func (c *Chunks) Read(p []byte) (int, error) {
	for len(c.read) == 0 && c.ended == nil {
		c.read, c.ended = c.Next()
	}
	n := copy(p, c.read)
	if c.read = c.read[n:]; len(c.read) == 0 {
		c.read = nil
	}
	if n == 0 && len(p) > 0 {
		return 0, c.ended
	}
	return n, nil
}
