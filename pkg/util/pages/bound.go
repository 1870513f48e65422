package pages

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// ErrTooLarge is the error of an answer that exceeds the bound of its request.
var ErrTooLarge = errors.New("the answer has more bytes than it may have")

// Bounded returns a copy of a config, whose clients heed Within.
func Bounded(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(Transport)
	return config
}

// Transport is a transport that heeds Within.
func Transport(to http.RoundTripper) http.RoundTripper { return transport{to} }

type boundKey struct{}

// Within returns a context whose requests fail with ErrTooLarge, before anything is decoded, when
// their answers have more bytes.
func Within(ctx context.Context, most int64) context.Context {
	return context.WithValue(ctx, boundKey{}, most)
}

// PageWithin is Within for a page of a list. A page of one object may have any size.
func PageWithin(ctx context.Context, of *metav1.ListOptions, most int64) context.Context {
	if of.Limit <= 1 {
		return ctx
	}
	return Within(ctx, most)
}

// IsTooLarge reports whether an answer has more bytes than it may.
func IsTooLarge(err error) bool { return errors.Is(err, ErrTooLarge) }

type transport struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper. It fails itself: client-go logs what fails later.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := t.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err //nolint:wrapcheck // it's the transport's own
	}
	most, bounded := request.Context().Value(boundKey{}).(int64)
	if !bounded {
		return answer, nil
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, most+1))
	switch {
	case err != nil:
		return nil, err //nolint:wrapcheck // it's the body's own
	case int64(len(text)) > most:
		return nil, ErrTooLarge
	}
	answer.Body = io.NopCloser(bytes.NewReader(text))
	return answer, nil
}
