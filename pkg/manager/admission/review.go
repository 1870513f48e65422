package admission

import (
	"encoding/json"
	"fmt"
	"net/http"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// jobs are the only objects that the webhook changes.
var jobs = metav1.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}

// jobFields is the part of a Job that the webhook reads. The response is a patch, so fields of
// newer API versions aren't lost.
type jobFields struct {
	Metadata struct {
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		ManagedBy *string `json:"managedBy"`
	} `json:"spec"`
}

// review responds to one request of the hub's API server. The webhook configuration selects the
// namespaces.
func review(request *admissionv1.AdmissionRequest) admission.Response {
	if request.Resource != jobs || request.Operation != admissionv1.Create || request.SubResource != "" {
		return admission.Allowed("")
	}
	var created jobFields
	if err := json.Unmarshal(request.Object.Raw, &created); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("the Job that jobferry-manager was sent: %w", err))
	}
	if _, foreign := created.Metadata.Labels[v1alpha1.LabelOrigin]; foreign || created.Spec.ManagedBy != nil {
		return admission.Allowed("")
	}
	return admission.Patched("", jsonpatch.NewOperation("add", "/spec/managedBy", v1alpha1.ManagedByDispatcher))
}
