package link

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// Explain finds the reason and the message for a worker that can't be used because of this error.
// The message says what happened, then what to do. It leaves out the addresses of ephemeral ports,
// which would make each message different.
func Explain(err error) (reason, message string) {
	var broken *BoundError
	if errors.As(err, &broken) {
		return broken.Reason, broken.Message
	}
	for _, known := range knownErrors {
		if hint, ok := known.matches(err); ok {
			return known.reason, hint
		}
	}
	return v1alpha1.ReasonUnreachable, plainCause(err)
}

// knownError is one kind of error, and the words for it.
type knownError struct {
	reason  string
	matches func(error) (message string, ok bool)
}

// knownErrors are tried in order. The API server's own answers come first.
var knownErrors = []knownError{
	{v1alpha1.ReasonUnauthorized, when(apierrors.IsUnauthorized,
		"the API server doesn't accept the credentials: put a kubeconfig with valid ones into the Secret")},
	{v1alpha1.ReasonForbidden, func(err error) (string, bool) {
		return fmt.Sprintf("a permission is missing: %v", firstLine(err)), apierrors.IsForbidden(err)
	}},
	{v1alpha1.ReasonUnreachable, func(err error) (string, bool) {
		var status apierrors.APIStatus
		if !errors.As(err, &status) {
			return "", false
		}
		return fmt.Sprintf("the API server answers %d: %v", status.Status().Code, firstLine(err)), true
	}},
	{v1alpha1.ReasonUntrusted, func(err error) (string, bool) {
		var unverified *tls.CertificateVerificationError
		if !errors.As(err, &unverified) {
			return "", false
		}
		return fmt.Sprintf("%v: check server and certificate-authority-data of the kubeconfig", unverified.Err), true
	}},
	{v1alpha1.ReasonUntrusted, func(err error) (string, bool) {
		var unknown x509.UnknownAuthorityError
		return "the server's certificate isn't signed by the kubeconfig's CA", errors.As(err, &unknown)
	}},
	{v1alpha1.ReasonUnreachable, func(err error) (string, bool) {
		var dns *net.DNSError
		if !errors.As(err, &dns) {
			return "", false
		}
		return fmt.Sprintf("the name %q can't be resolved", dns.Name), true
	}},
	{v1alpha1.ReasonUnreachable, when(isRefused, "the connection is refused: nothing listens at the server's address")},
	{v1alpha1.ReasonUnreachable, when(isTimeout, "no answer in time")},
	{v1alpha1.ReasonUnreachable, when(isCutOff, "the connection was cut off")},
}

func when(is func(error) bool, message string) func(error) (string, bool) {
	return func(err error) (string, bool) { return message, is(err) }
}

func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

func isCutOff(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed)
}

// plainCause is the innermost part of a network error, without addresses.
func plainCause(err error) string {
	var inURL *url.Error
	if errors.As(err, &inURL) {
		err = inURL.Err
	}
	var inNet *net.OpError
	if errors.As(err, &inNet) {
		return fmt.Sprintf("%s: %v", inNet.Op, inNet.Err)
	}
	return firstLine(err).Error()
}

// LacksPermission reports whether the API server refused the request to the kubeconfig's user.
func LacksPermission(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}
