package clusters

import (
	"encoding/binary"
	"fmt"
	"io"
	"mime"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// Bounds of a worker's answers, in bytes. An object has at most 1.5 MiB in etcd, and hardly more
// than twice that as JSON.
const (
	maxProbeBytes  = 1 << 20
	maxObjectBytes = 4 << 20
	maxPageBytes   = 16 << 20
	maxEventBytes  = 4 << 20
	maxHeaderBytes = 64 << 10
)

// BoundError is returned for an answer of a worker that breaks a bound. The rest of the answer
// isn't read.
type BoundError struct {
	// Reason is one of the condition Ready.
	Reason string
	// Message says what broke which bound, and what to do.
	Message string
}

// Error returns the message.
func (e *BoundError) Error() string { return e.Message }

func tooLarge(req *http.Request, what string, limit int) *BoundError {
	return &BoundError{v1alpha1.ReasonAnswerTooLarge, fmt.Sprintf(
		"%s to %s %s is larger than %d MiB, which no API server sends: check what answers at the kubeconfig's server",
		what, req.Method, req.URL.Path, limit>>20)}
}

// refuseEncoded refuses an answer that is compressed, or encoded in another way that wasn't asked
// for: a few bytes of it could become any number.
func refuseEncoded(resp *http.Response) error {
	encoding := resp.Header.Get("Content-Encoding")
	if encoding == "" || encoding == "identity" {
		return nil
	}
	_ = resp.Body.Close() // nothing of it is used
	return &BoundError{v1alpha1.ReasonAnswerEncoded, fmt.Sprintf(
		"the answer to %s %s has the Content-Encoding %.20q, which the manager doesn't ask for: check what answers at the kubeconfig's server",
		resp.Request.Method, resp.Request.URL.Path, encoding)}
}

// bound limits what is read of an answer, by the class of its request. The bytes of a watch are
// counted anew for each event. The error is also passed to broken, because client-go makes a mere
// text of it in a watch; that of a list isn't, because the list may be read in smaller pages.
func bound(class requestClass, resp *http.Response, broken func(*BoundError)) {
	body := &boundedBody{ReadCloser: resp.Body, broken: broken}
	switch watches := verb(resp.Request) == "watch" && resp.StatusCode == http.StatusOK; {
	case watches:
		body.counter, body.err = eventCounter(resp), tooLarge(resp.Request, "an event of the answer", maxEventBytes)
	default:
		limit := maxBytes[class]
		body.counter, body.err = &byteCounter{left: limit}, tooLarge(resp.Request, "the answer", limit)
		if class == informerRequest {
			body.broken = func(*BoundError) {}
		}
	}
	resp.Body = body
}

var maxBytes = map[requestClass]int{
	probeRequest:    maxProbeBytes,
	jobRequest:      maxObjectBytes,
	informerRequest: maxPageBytes,
}

// boundedBody is the body of an answer up to its bound.
type boundedBody struct {
	io.ReadCloser
	counter counter
	err     *BoundError
	broken  func(*BoundError)
	ended   bool
}

// Read reads from the body, and fails once a bound is broken.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.ended {
		return 0, b.err
	}
	n, err := b.ReadCloser.Read(p)
	if b.counter.within(p[:n]) {
		return n, err
	}
	b.ended = true
	b.broken(b.err)
	return 0, b.err
}

// counter counts what was read, and reports whether that is within the bound.
type counter interface{ within(read []byte) bool }

// byteCounter counts the bytes of a whole answer.
type byteCounter struct{ left int }

func (c *byteCounter) within(read []byte) bool {
	c.left -= len(read)
	return c.left >= 0
}

// eventCounter counts as client-go cuts the events of this answer.
func eventCounter(resp *http.Response) counter {
	mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // unreadable: client-go takes it for JSON
	if mediaType == runtime.ContentTypeProtobuf {
		return &frameCounter{}
	}
	return &valueCounter{}
}

// frameCounter reads the lengths of frames, which are four bytes before each.
type frameCounter struct {
	header [4]byte
	read   int // of the header
	left   int // of the frame
}

func (c *frameCounter) within(read []byte) bool {
	for len(read) > 0 {
		if c.left > 0 {
			n := min(c.left, len(read))
			c.left, read = c.left-n, read[n:]
			continue
		}
		n := copy(c.header[c.read:], read)
		c.read, read = c.read+n, read[n:]
		if c.read < len(c.header) {
			continue
		}
		length := binary.BigEndian.Uint32(c.header[:])
		if length > maxEventBytes {
			return false
		}
		c.read, c.left = 0, int(length)
	}
	return true
}

// valueCounter counts the bytes of each JSON object, with what is before it.
type valueCounter struct {
	length, depth    int
	inString, escape bool
}

func (c *valueCounter) within(read []byte) bool {
	for _, b := range read {
		c.length++
		switch {
		case c.escape:
			c.escape = false
		case c.inString:
			c.escape, c.inString = b == '\\', b != '"'
		case b == '"':
			c.inString = true
		case b == '{' || b == '[':
			c.depth++
		case b == '}' || b == ']':
			if c.depth--; c.depth == 0 {
				c.length = 0
			}
		}
		if c.length > maxEventBytes {
			return false
		}
	}
	return true
}
