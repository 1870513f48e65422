package subresources

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/util/apistatus"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// failure makes a status: apimachinery's constructors would put a resource's name into the message.
func failure(code int32, reason metav1.StatusReason, message string) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	}
}

func statusError(code int32, reason metav1.StatusReason, format string, args ...any) error {
	return &apierrors.StatusError{ErrStatus: failure(code, reason, fmt.Sprintf(format, args...))}
}

// notYet is for what time, or an edit, will change.
func notYet(format string, args ...any) error {
	return statusError(http.StatusConflict, metav1.StatusReasonConflict, format, args...)
}

// notFound is for Pods and paths; for a hub Job, the hub's own error is returned.
func notFound(format string, args ...any) error {
	return statusError(http.StatusNotFound, metav1.StatusReasonNotFound, format, args...)
}

// unavailable is for a worker that can't be reached. It has no Retry-After, with which clients
// would silently retry.
func unavailable(format string, args ...any) error {
	return statusError(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, format, args...)
}

// fromWorker turns an error of a request to a worker into one for the user. It's never Unauthorized
// or Forbidden, on which clients would act: those concern the manager's credentials.
func fromWorker(worker, request string, err error) error {
	var said apierrors.APIStatus
	switch {
	case errors.As(err, &said):
		return fromStatus(worker, request, said.Status())
	case errors.Is(err, context.DeadlineExceeded) || isTimeout(err):
		return statusError(http.StatusGatewayTimeout, metav1.StatusReasonTimeout,
			"worker %q doesn't answer in time (%s): see the state of WorkerCluster %q", worker, request, worker)
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, errTooLarge):
		return statusError(http.StatusBadGateway, metav1.StatusReasonInternalError,
			"the answer of worker %q (%s) is larger than %d MiB, or has more than %d objects or %d fields",
			worker, request, maxAnswerBytes>>20, maxAnswerValues, maxAnswerFields)
	case errors.Is(err, errCostly):
		return statusError(http.StatusBadGateway, metav1.StatusReasonInternalError, "worker %q (%s): %s", worker, request, errCostly)
	default:
		return unavailable("worker %q can't be reached (%s): %s", worker, request, clean(err.Error()))
	}
}

func fromStatus(worker, request string, s metav1.Status) error {
	message := clean(s.Message)
	if reason, ok := passed[s.Code]; ok {
		return statusError(s.Code, reason, "worker %q: %s", worker, message)
	}
	if s.Code == http.StatusUnauthorized || s.Code == http.StatusForbidden {
		return unavailable("worker %q refuses this to the hub (%s): its administrator must give the hub's credentials there the permission, or doesn't want it; it says: %s",
			worker, request, message)
	}
	return unavailable("worker %q fails (%s) with %d: %s", worker, request, s.Code, message)
}

// passed are the codes of a worker that a user gets, too. The reason isn't the worker's: clients
// act on it, and show it as it is.
var passed = map[int32]metav1.StatusReason{
	http.StatusBadRequest:            metav1.StatusReasonBadRequest,
	http.StatusNotFound:              metav1.StatusReasonNotFound,
	http.StatusConflict:              metav1.StatusReasonConflict,
	http.StatusUnprocessableEntity:   metav1.StatusReasonInvalid,
	http.StatusRequestEntityTooLarge: metav1.StatusReasonRequestEntityTooLarge,
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

func writeError(w http.ResponseWriter, err error) {
	s := apistatus.Of(err)
	if s.Details != nil && s.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(s.Details.RetryAfterSeconds)))
	}
	writeJSON(w, int(s.Code), s)
}

func writeJSON(w http.ResponseWriter, code int, object any) {
	setHeaders(w, "application/json")
	w.WriteHeader(code)
	_ = encoderTo(w).Encode(object) // API types fail only with the client's connection
}

// encoderTo leaves <, > and & as they are, of which json.Marshal makes six bytes each: no browser
// takes an answer for a page.
func encoderTo(w io.Writer) *json.Encoder {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder
}

// setHeaders sets the headers of all responses: no client may sniff another type or cache them.
func setHeaders(w http.ResponseWriter, contentType string) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-cache, private")
}

// clean makes text from elsewhere harmless for a terminal, and short.
func clean(s string) string { return text.Clean(s, text.MaxMessage) }

// shorten is clean for a single word.
func shorten(s string) string {
	const longestWord = 128
	return text.Clean(s, longestWord)
}
