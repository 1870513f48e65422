package kubelet

import (
	"encoding/json"
	"net/http"

	"github.com/jobferry/jobferry/pkg/util/apistatus"
)

// WriteError answers a request for a subresource with an error: of a log with its text, of a
// session with a Status.
func WriteError(w http.ResponseWriter, subresource string, err error) {
	status := apistatus.Of(err)
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
