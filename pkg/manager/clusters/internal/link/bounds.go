package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/decoded"
	"github.com/jobferry/jobferry/pkg/util/frames"
	"github.com/jobferry/jobferry/pkg/util/mediatype"
	"github.com/jobferry/jobferry/pkg/util/quantities"
)

// Bounds of a worker's answers, in bytes. An object has at most 1.5 MiB in etcd, and hardly more
// than twice that as JSON.
const (
	maxProbeBytes  = 1 << 20
	maxObjectBytes = 4 << 20
	maxPageBytes   = 16 << 20
	maxEventBytes  = 4 << 20
	maxHeaderBytes = 64 << 10
	// maxErrorBytes and maxErrorDecoded are those of an error of an informer, which is remembered, or
	// of a probe, or in a format that isn't decoded. That of a write may show all that was written.
	maxErrorBytes   = 64 << 10
	maxErrorDecoded = 256 << 10
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

func tooLarge(req *http.Request, what string, limit, decoded int) *BoundError {
	size := func(bytes int) string {
		if bytes < 1<<20 {
			return fmt.Sprint(bytes>>10, " KiB")
		}
		return fmt.Sprint(bytes>>20, " MiB")
	}
	return &BoundError{v1alpha1.ReasonAnswerTooLarge, fmt.Sprintf(
		"%s to %s %s is larger than %s, or %s when it's decoded, which no API server sends: "+
			"check what answers at the kubeconfig's server",
		what, req.Method, req.URL.Path, size(limit), size(decoded))}
}

func neither(req *http.Request) *BoundError {
	return &BoundError{v1alpha1.ReasonAnswerTooLarge, fmt.Sprintf(
		"the answer to %s %s has a value that is to be a number or a text, and is neither, "+
			"which no API server sends: check what answers at the kubeconfig's server",
		req.Method, req.URL.Path)}
}

func tooCostly(req *http.Request) *BoundError {
	return &BoundError{v1alpha1.ReasonAnswerTooLarge, fmt.Sprintf(
		"the answer to %s %s has a quantity of more than %d characters, or with an exponent of more than %d digits, "+
			"which no API server sends: check what answers at the kubeconfig's server",
		req.Method, req.URL.Path, quantities.MaxBytes, quantities.MaxExponentDigits)}
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

// refuseWatch refuses events in a format that isn't decoded: client-go would leave the answer open.
func refuseWatch(resp *http.Response) error {
	format := resp.Header.Get("Content-Type")
	if verb(resp.Request) != "watch" || resp.StatusCode != http.StatusOK ||
		mediatype.Only(resp, runtime.ContentTypeJSON, runtime.ContentTypeProtobuf) != "" {
		return nil
	}
	_ = resp.Body.Close() // nothing of it is used
	return fmt.Errorf("the events of %s are in %.100q, which the manager doesn't ask for", resp.Request.URL.Path, format)
}

// refuseStatus refuses an answer with a status that HTTP doesn't have: each would become a series
// of the metrics.
func refuseStatus(resp *http.Response) error {
	if resp.StatusCode >= 100 && resp.StatusCode < 600 {
		return nil
	}
	_ = resp.Body.Close() // nothing of it is used
	return fmt.Errorf("the answer to %s %s has the HTTP status %d, which there isn't", resp.Request.Method, resp.Request.URL.Path, resp.StatusCode)
}

// bound limits what is read of an answer, by the class of its request, and what it becomes when
// it's decoded. An event of a watch counts as an answer. A large answer waits for h. The error is
// also passed to broken, because client-go makes a mere text of it in a watch; that of a list
// isn't, because the list may be read in smaller pages.
func bound(class requestClass, resp *http.Response, h *hold, broken func(*BoundError)) {
	format, watches := mediatype.Only(resp, runtime.ContentTypeJSON, runtime.ContentTypeProtobuf), hasEvents(resp)
	limit, most, what := maxBytes[class], maxDecodedBytes, "the answer"
	switch {
	case watches:
		limit, what = maxEventBytes, "an event of the answer"
	case class == informerRequest:
		broken = func(*BoundError) {}
	}
	if isError(resp) && (class != jobRequest || format == "") {
		limit, most, what = maxErrorBytes, maxErrorDecoded, "an error"
	}
	ctx, cancel := context.WithCancel(resp.Request.Context())
	from := &largeReader{from: resp.Body, large: func() error { return h.large(ctx) }}
	closed := func() {
		cancel()
		if h.ofAnswer {
			h.release()
		}
	}
	explain := func(err error) *BoundError {
		switch {
		case errors.Is(err, errTooLarge):
			return tooLarge(resp.Request, what, limit, most)
		case errors.Is(err, errCostly):
			return tooCostly(resp.Request)
		case errors.Is(err, errNeither):
			return neither(resp.Request)
		}
		return nil
	}
	read := readerOf(class, resp, format, from, limit)
	next := func() ([]byte, error) {
		if watches { // the event before has been taken
			h.release()
			from.read = 0
		}
		data, decoded, err := read()
		if decoded > int64(most) {
			return nil, errTooLarge
		}
		if format != runtime.ContentTypeProtobuf {
			decoded *= 2 // in lists that grow
		}
		if waiting := h.decodes(ctx, decoded); waiting != nil {
			return nil, waiting
		}
		return data, err
	}
	resp.Body = &boundedBody{Closer: resp.Body, closed: closed, Chunks: frames.Chunks{Next: func() ([]byte, error) {
		data, err := next()
		if broke := explain(err); broke != nil {
			broken(broke)
			return nil, broke
		}
		return data, err
	}}}
}

func hasEvents(resp *http.Response) bool {
	return verb(resp.Request) == "watch" && resp.StatusCode == http.StatusOK
}

func isError(resp *http.Response) bool { return resp.StatusCode >= http.StatusMultipleChoices }

// readerOf returns what reads an answer, or one event after the other, up to a limit.
func readerOf(class requestClass, resp *http.Response, format string, from io.Reader, limit int) func() (data []byte, decoded int64, err error) {
	switch {
	case isError(resp) && format == "":
		return func() ([]byte, int64, error) { return readPage(from, limit) }
	case format != runtime.ContentTypeProtobuf: // others are counted, too: who asks for the bytes gets them
		values := &valueReader{from: from, limit: limit, hasCostly: quantities.HasCostlyObject}
		switch {
		case hasEvents(resp):
			values.eachAnew, values.hasCostly = true, quantities.HasCostlyEvent
		case isError(resp) || class == probeRequest && path.Base(resp.Request.URL.Path) == "version":
			values.hasCostly = quantities.HasCostlyWithKind
		}
		return values.next
	case hasEvents(resp):
		return eventsOf(from)
	default:
		return func() ([]byte, int64, error) { return readObject(from, limit) }
	}
}

// eventsOf reads the events of a watch in protobuf.
func eventsOf(from io.Reader) func() (event []byte, size int64, err error) {
	var size int64
	events := &frames.Reader{From: from, MaxBytes: maxEventBytes, Check: func(event []byte) (err error) {
		size, err = checkEvent(event)
		return err
	}}
	return func() ([]byte, int64, error) {
		event, err := events.Next()
		return event, size, err
	}
}

var maxBytes = map[requestClass]int{
	probeRequest:    maxProbeBytes,
	jobRequest:      maxObjectBytes,
	informerRequest: maxPageBytes,
}

// These are returned instead of bytes that break a bound.
var (
	errTooLarge = frames.ErrTooLarge
	errCostly   = decoded.ErrCostly
	errNeither  = decoded.ErrNeither
)

// boundedBody is the body of an answer up to its bound. Reading fails once that is broken.
type boundedBody struct {
	io.Closer
	frames.Chunks
	closed func()
}

// Close ends all that waits for the answer.
func (b *boundedBody) Close() error {
	b.closed()
	return b.Closer.Close()
}

// readPage reads an error that nothing decodes, such as a load balancer's whose worker doesn't
// answer. One that is too large is cut off: its status says enough.
func readPage(from io.Reader, limit int) (text []byte, size int64, err error) {
	if text, err = io.ReadAll(io.LimitReader(from, int64(limit))); err == nil {
		err = io.EOF
	}
	return text, int64(len(text)), err
}

// readObject reads all of an answer in protobuf, and returns what it becomes, too.
func readObject(from io.Reader, limit int) (data []byte, decoded int64, err error) {
	data, err = io.ReadAll(io.LimitReader(from, int64(limit)+1))
	switch {
	case len(data) > limit:
		return nil, 0, errTooLarge
	case err == nil:
		err = io.EOF
	}
	decoded, broken := checkObject(data)
	if broken != nil {
		return nil, 0, broken
	}
	return data, decoded, err
}
