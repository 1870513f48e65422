package pages

import (
	"context"
	"errors"
	"io"
	"net/http"

	"k8s.io/client-go/rest"
)

// ErrTooLarge is the error of an answer that exceeds the bound of its request.
var ErrTooLarge = errors.New("the answer has more bytes than it may have")

// Bounded returns a copy of a config, whose clients heed Within.
func Bounded(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(to http.RoundTripper) http.RoundTripper { return transport{to} })
	return config
}

type boundKey struct{}

// Within returns a context whose requests fail with ErrTooLarge, before anything is decoded, when
// their answers have more bytes.
func Within(ctx context.Context, bytes int64) context.Context {
	return context.WithValue(ctx, boundKey{}, bytes)
}

type transport struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := t.RoundTripper.RoundTrip(request)
	if bytes, bounded := request.Context().Value(boundKey{}).(int64); err == nil && bounded {
		answer.Body = &body{answer.Body, bytes}
	}
	return answer, err //nolint:wrapcheck // it's the transport's own
}

type body struct {
	io.ReadCloser
	left int64
}

func (b *body) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if b.left -= int64(n); b.left < 0 {
		return 0, ErrTooLarge
	}
	return n, err //nolint:wrapcheck // it's the body's own
}
