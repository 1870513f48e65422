package subresources

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/jobferry/jobferry/pkg/util/jsonscan"
	"github.com/jobferry/jobferry/pkg/util/mediatype"
	"github.com/jobferry/jobferry/pkg/util/quantities"
)

// Bounds of what a worker may answer. An object has at most 1.5 MiB in etcd, and hardly more than
// twice that as JSON.
const (
	maxAnswerBytes = 4 << 20
	maxErrorBytes  = 64 << 10
	// maxErrorValues and maxErrorFields bound a Status, or what a worker sends instead.
	maxErrorValues, maxErrorFields = 200, 2000
	// maxAnswerValues bounds the objects and arrays of an answer: "{}" is two bytes, but a Pod or
	// container in memory, which is hundreds of times as much. A Pod has 200 or so.
	maxAnswerValues = 10_000
	// maxAnswerFields bounds the fields and elements: a label of 8 bytes is ten times as much in
	// memory. 50 Pods have 10,000 or so.
	maxAnswerFields = 50_000
)

// errTooLarge is returned for an answer that is over a bound. The rest isn't read.
var errTooLarge = errors.New("the answer is too large")

// errCostly is returned for an answer that would take too long to decode.
var errCostly = errors.New("the answer has a quantity that no API server sends")

// bounded names the user in requests, and limits what is read of answers. Logs have no limit: they
// pass through.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	if agent := agentOf(req.Context()); agent != "" {
		req = req.Clone(req.Context())
		req.Header.Set("User-Agent", agent)
	}
	resp, err := b.RoundTripper.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if err := req.Context().Err(); err != nil {
		// the transport can still hand over what the end of the request made the worker say
		_ = resp.Body.Close()
		return nil, err
	}
	resp.Header.Del("Retry-After") // the clients would obey, however long it is
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols:
	case resp.StatusCode >= http.StatusMultipleChoices && req.Header.Get("Upgrade") != "":
		resp.Body = newBoundedBody(resp.Body, maxErrorBytes) // see upgradeRefused
	case resp.StatusCode >= http.StatusMultipleChoices:
		mediatype.Only(resp, runtime.ContentTypeJSON)
		body := newBoundedBody(resp.Body, maxErrorBytes)
		body.values, body.fields = maxErrorValues, maxErrorFields
		resp.Body = &checkedBody{from: body, hasCostly: quantities.HasCostlyWithKind}
	case isLog(req.URL.Path):
	default:
		return boundObject(resp)
	}
	return resp, nil
}

// boundObject bounds an answer that is decoded. Values can be counted in JSON alone.
func boundObject(resp *http.Response) (*http.Response, error) {
	mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // unreadable: not JSON
	if mediaType != runtime.ContentTypeJSON {
		_ = resp.Body.Close() // nothing of it is used
		return nil, fmt.Errorf("it answers in %q, which wasn't asked for", shorten(mediaType))
	}
	body := newBoundedBody(resp.Body, maxAnswerBytes)
	if resp.Request != nil {
		body.read, _ = resp.Request.Context().Value(readKey{}).(*atomic.Int64)
	}
	resp.Body = &checkedBody{from: body, hasCostly: quantities.HasCostlyObject}
	return resp, nil
}

// readKey is the key of the number that countingBytes returns, in a context.
type readKey struct{}

// countingBytes returns a context for requests, and how many bytes of their answers were read to be
// decoded, and of those before with this context.
func countingBytes(ctx context.Context) (context.Context, *atomic.Int64) {
	if read, counts := ctx.Value(readKey{}).(*atomic.Int64); counts {
		return ctx, read
	}
	read := &atomic.Int64{}
	return context.WithValue(ctx, readKey{}, read), read
}

// checkedBody is the body of an answer that is read in whole before it's decoded.
type checkedBody struct {
	from *boundedBody
	// hasCostly is what package quantities has for this kind of answer.
	hasCostly func(text []byte, kinds *runtime.Scheme) bool
	all       *bytes.Reader // nil: not read yet
}

func (b *checkedBody) Read(p []byte) (int, error) {
	if b.all == nil {
		text, err := io.ReadAll(b.from)
		if err == nil && b.hasCostly(text, scheme.Scheme) {
			err = errCostly
		}
		if err != nil {
			return 0, err
		}
		b.all = bytes.NewReader(text)
	}
	return b.all.Read(p)
}

func (b *checkedBody) Close() error { return b.from.Close() }

// boundedBody is the body of an answer up to its bounds.
type boundedBody struct {
	io.ReadCloser
	bytes, values, fields int // that may follow
	outside               jsonscan.Structure
	read                  *atomic.Int64 // counts the bytes; nil: nobody does
}

func newBoundedBody(body io.ReadCloser, bytes int) *boundedBody {
	return &boundedBody{ReadCloser: body, bytes: bytes, values: maxAnswerValues, fields: maxAnswerFields}
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.bytes -= n
	if b.read != nil {
		b.read.Add(int64(n))
	}
	for _, c := range p[:n] {
		if !b.outside.Has(c) {
			continue
		}
		switch c {
		case '{', '[', 'n': // null, which becomes a struct, too, where others of a list do
			b.values--
		case ',':
			b.fields--
		}
	}
	if b.bytes < 0 || b.values < 0 || b.fields < 0 {
		return 0, errTooLarge
	}
	return n, err
}
