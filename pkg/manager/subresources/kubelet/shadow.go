package kubelet

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/objectnames"
)

// PodReader reads a Pod of the hub.
type PodReader interface {
	ReadPod(context.Context, types.NamespacedName) (*corev1.Pod, error)
}

func (req *Request) checkNames() error {
	switch {
	case len(validation.IsDNS1123Label(req.Job.Namespace)) > 0,
		len(validation.IsDNS1123Subdomain(req.Pod)) > 0,
		req.Subresource != PortForward && len(validation.IsDNS1123Label(req.Container)) > 0:
		return apierrors.NewBadRequest("these aren't names of a Pod in a namespace, and of its container")
	}
	return nil
}

// identify reads the Pod of the hub, and fills in what it says: the Job, the worker and the UID of
// the worker's Pod. It returns the Node, and an error that is NotFound if there is no such Pod, or
// if it doesn't stand for a worker's.
func (h *handler) identify(ctx context.Context, req *Request) (node string, err error) {
	key := types.NamespacedName{Namespace: req.Job.Namespace, Name: req.Pod}
	pod, err := h.Pods.ReadPod(ctx, key)
	if apierrors.IsNotFound(err) {
		return "", notFound(key, "there is no such Pod")
	}
	if err != nil {
		return "", apierrors.NewInternalError(fmt.Errorf("the hub doesn't answer for Pod %q: %w", key, err))
	}
	worker, ours := strings.CutPrefix(pod.Spec.NodeName, v1alpha1.NodePrefix)
	if !ours || worker == "" || pod.Labels[v1alpha1.LabelShadow] != "true" {
		return "", notFound(key, "it isn't one of a dispatched Job")
	}
	node = pod.Spec.NodeName
	owner := metav1.GetControllerOf(pod)
	uid := pod.Annotations[v1alpha1.AnnotationPodUID]
	switch {
	case owner == nil || owner.Kind != "Job" || owner.APIVersion != batchv1.SchemeGroupVersion.String() ||
		!objectnames.IsDNSSubdomain(owner.Name) || owner.UID == "":
		return node, notFound(key, "no Job is its controller")
	case uid == "":
		return node, notFound(key, "it doesn't say which Pod of the worker it stands for")
	}
	req.Worker, req.Job.Name, req.JobUID, req.PodUID = worker, owner.Name, owner.UID, types.UID(uid)
	return node, nil
}

func notFound(pod types.NamespacedName, why string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: fmt.Sprintf("Pod %q isn't found on this Node: %s", pod.String(), why),
	}}
}
