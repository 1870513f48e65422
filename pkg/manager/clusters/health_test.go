package clusters

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// TestLossClock holds the clock to its meaning: it's set exactly while the worker isn't Ready, to
// the time of the first observation of that stretch. Observed is when the last run of good, or of
// bad, observations began.
func TestLossClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := Health{State: Connecting}
		var first, observed time.Time
		was := 0
		states := []State{Ready, Disconnected, Refused, Connecting}
		for i := range rapid.IntRange(1, 30).Draw(t, "observations") {
			v := observation{state: rapid.SampledFrom(states).Draw(t, "state"), at: time.Unix(int64(i+1), 0)}
			switch {
			case v.state == Ready:
				first = time.Time{}
			case v.state != Connecting && first.IsZero():
				first = v.at
			}
			if is := reachability(v.state); is != was || observed.IsZero() {
				was, observed = is, v.at
			}
			if h = h.after(v); !h.Since.Equal(first) || !h.LossClock.Equal(first) || !h.Observed.Equal(observed) {
				t.Fatalf("since %v, clock %v, want %v; observed %v, want %v", h.Since, h.LossClock, first, h.Observed, observed)
			}
		}
	})
}

func TestOnlyTheContactIsNoNews(t *testing.T) {
	h := Health{State: Ready, Version: "v1.36.0", Observed: time.Unix(1, 0)}
	at := time.Unix(5, 0)
	same := h.after(observation{state: Ready, at: at, answered: true, version: "v1.36.0"})
	if !same.LastContact.Equal(at) || !same.sameToOthers(h) {
		t.Errorf("%+v", same)
	}
	if upgraded := h.after(observation{state: Ready, version: "v1.36.1"}); upgraded.sameToOthers(h) {
		t.Error("an upgrade is nothing to others")
	}
}

func TestExplain(t *testing.T) {
	jobs := schema.GroupResource{Group: "batch", Resource: "jobs"}
	overTCP := func(err error) error {
		return &url.Error{Op: "Get", URL: "https://h", Err: &net.OpError{Op: "read", Net: "tcp", Err: err}}
	}
	for _, c := range []struct {
		err    error
		reason string
		says   string
	}{
		{apierrors.NewUnauthorized("no"), v1alpha1.ReasonUnauthorized, "credentials"},
		{apierrors.NewForbidden(jobs, "", errors.New("no rule")), v1alpha1.ReasonForbidden, "jobs.batch"},
		{apierrors.NewInternalError(io.EOF), v1alpha1.ReasonUnreachable, "500"},
		{overTCP(syscall.ECONNREFUSED), v1alpha1.ReasonUnreachable, "refused"},
		{overTCP(syscall.ECONNRESET), v1alpha1.ReasonUnreachable, "cut off"},
		{overTCP(syscall.ENETUNREACH), v1alpha1.ReasonUnreachable, "unreachable"},
		{fmt.Errorf("get: %w", context.DeadlineExceeded), v1alpha1.ReasonUnreachable, "in time"},
		{&net.DNSError{Name: "w.example.com", Err: "no such host"}, v1alpha1.ReasonUnreachable, "w.example.com"},
		{errors.New("strange\nthings"), v1alpha1.ReasonUnreachable, "strange"},
	} {
		reason, message := explain(c.err)
		if reason != c.reason || !strings.Contains(message, c.says) || strings.Contains(message, "\n") {
			t.Errorf("%v: %s: %s; want %s, ...%s...", c.err, reason, message, c.reason, c.says)
		}
	}
}
