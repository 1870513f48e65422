package admission

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// jobs are the only objects that the webhook changes.
var jobs = metav1.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}

// jobFields is the part of a Job that the webhook reads. The response is a patch, so fields of
// newer API versions aren't lost.
type jobFields struct {
	labelled
	Spec struct {
		ManagedBy *string  `json:"managedBy"`
		Template  labelled `json:"template"`
	} `json:"spec"`
}

type labelled struct {
	Metadata struct {
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
}

// review responds to one request of the hub's API server: to create a Job, in the namespaces that
// the webhook configuration selects, or to update one, of which the user has left out managedBy.
func review(request *admissionv1.AdmissionRequest) admission.Response {
	if request.Resource != jobs || request.SubResource != "" {
		return admission.Allowed("")
	}
	var written, old jobFields
	err := json.Unmarshal(request.Object.Raw, &written)
	if request.Operation == admissionv1.Update && err == nil {
		err = json.Unmarshal(request.OldObject.Raw, &old)
	}
	_, foreign := written.Metadata.Labels[v1alpha1.LabelOrigin]
	switch {
	case err != nil:
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("the Job that jobferry-manager was sent: %w", err))
	case written.Spec.ManagedBy != nil,
		request.Operation == admissionv1.Create && foreign,
		request.Operation == admissionv1.Update && ptr.Deref(old.Spec.ManagedBy, "") != v1alpha1.ManagedByDispatcher:
		return admission.Allowed("")
	}
	patch := []jsonpatch.Operation{jsonpatch.NewOperation("add", "/spec/managedBy", v1alpha1.ManagedByDispatcher)}
	// A Job without labels has those of its Pods, in the end with those that the API server adds to
	// them. A change would part the two too early: without labels, the Job gets them again.
	labels := written.Metadata.Labels
	if request.Operation == admissionv1.Create && len(labels) > 0 && maps.Equal(labels, written.Spec.Template.Metadata.Labels) {
		patch = append(patch, jsonpatch.NewOperation("remove", "/metadata/labels", nil))
	}
	return admission.Patched("", patch...)
}
