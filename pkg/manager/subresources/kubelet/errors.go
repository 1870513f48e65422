package kubelet

import (
	"encoding/json"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/util/text"
)

// WriteError answers a request for a subresource with an error: of a log with its text, of a
// session with a Status.
func WriteError(w http.ResponseWriter, subresource string, err error) {
	status := StatusOf(err)
	if subresource == Log {
		http.Error(w, status.Message, codeOfLog(status.Code))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status) // it fails only with the client's connection
}

// codeOfLog returns one with which an API server shows the text of the answer to its user.
func codeOfLog(code int32) int {
	switch {
	case code == http.StatusForbidden:
		return http.StatusForbidden
	case code >= http.StatusInternalServerError || code == http.StatusTooManyRequests:
		return http.StatusInternalServerError
	default:
		return http.StatusBadRequest
	}
}

// StatusOf turns any error into a status for the client.
func StatusOf(err error) metav1.Status {
	status := metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError,
	}
	var said apierrors.APIStatus
	if errors.As(err, &said) {
		status = said.Status()
	} else {
		status.Message = text.Clean(err.Error(), text.MaxMessage)
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return status
}
