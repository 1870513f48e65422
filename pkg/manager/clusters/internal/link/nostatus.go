package link

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OfAPIServer makes another error of a 404 without a Status: of Kubernetes' own kinds, an API
// server says with a Status what it lacks. A proxy that has lost its way to the API server doesn't,
// and says nothing of what is there.
func OfAPIServer(err error) error {
	if !apierrors.IsNotFound(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return err
	}
	// Its text only: an error that wraps it would be a NotFound, too.
	return errors.New("the answer is a 404 that isn't an API server's: check what answers at the kubeconfig's server: " + err.Error())
}
