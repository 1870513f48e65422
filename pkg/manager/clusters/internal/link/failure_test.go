package link

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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

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
		reason, message := Explain(c.err)
		if reason != c.reason || !strings.Contains(message, c.says) || strings.Contains(message, "\n") {
			t.Errorf("%v: %s: %s; want %s, ...%s...", c.err, reason, message, c.reason, c.says)
		}
	}
}
