package access

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/jobferry/jobferry/pkg/util/jsonscan"
	"github.com/jobferry/jobferry/pkg/util/mediatype"
	"github.com/jobferry/jobferry/pkg/util/quantities"
)

// Bounds of an answer: in bytes, and in the values that it may have, each of which may become a
// struct. Both are far above what a registration reads.
const (
	maxAnswerBytes  = 4 << 20
	maxAnswerValues = 8_000
)

var errTooLarge = errors.New("the answer has more in it than a registration reads: check what answers at the cluster's server")

// IsTooLarge reports whether a request failed as the answer has more in it than is read.
func IsTooLarge(err error) bool { return errors.Is(err, errTooLarge) }

// boundedTransport reads answers in JSON up to the bounds. It passes on others so that nothing of
// them is decoded.
type boundedTransport struct{ to http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := t.to.RoundTrip(request)
	if err != nil {
		return nil, err //nolint:wrapcheck // it's the transport's own
	}
	mediatype.Only(answer, runtime.ContentTypeJSON)
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswerBytes+1))
	if err != nil {
		return nil, err //nolint:wrapcheck // it's the body's own
	}
	hasCostly := quantities.HasCostlyObject
	if answer.StatusCode >= http.StatusMultipleChoices {
		hasCostly = quantities.HasCostlyWithKind
	}
	if len(text) > maxAnswerBytes || valuesIn(text) > maxAnswerValues || hasCostly(text, Scheme) {
		return nil, errTooLarge
	}
	answer.Body = io.NopCloser(bytes.NewReader(text))
	return answer, nil
}

func valuesIn(text []byte) (n int) {
	var outside jsonscan.Structure
	for _, b := range text {
		if outside.Has(b) && (b == '{' || b == '[' || b == ',') {
			n++
		}
	}
	return n
}
