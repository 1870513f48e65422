// Package apistatus turns errors into what an API server answers with.
package apistatus

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/util/text"
)

// Of is the Status that an error contains, or one of an internal error with its text.
func Of(err error) metav1.Status {
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
