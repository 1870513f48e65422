package admission

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
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
		// Labels are text: they may be very many, and a map of them is ten times as much.
		Labels json.RawMessage `json:"labels"`
	} `json:"metadata"`
}

// isForeign reports whether labels are those of another hub's mirror.
func isForeign(labels json.RawMessage) (bool, error) {
	var known struct {
		Origin *string `json:"jobferry.dev/origin"` // v1alpha1.LabelOrigin
	}
	if len(labels) == 0 {
		return false, nil
	}
	err := utiljson.Unmarshal(labels, &known) // it tells the case of letters apart
	return known.Origin != nil, err
}

// admissionRequest is the part of an admissionv1.AdmissionRequest that the webhook reads.
type admissionRequest struct {
	UID         types.UID                   `json:"uid"`
	Resource    metav1.GroupVersionResource `json:"resource"`
	SubResource string                      `json:"subResource"`
	Operation   admissionv1.Operation       `json:"operation"`
	Object      json.RawMessage             `json:"object"`
	OldObject   json.RawMessage             `json:"oldObject"`
}

// maxUID bounds a review's UID, which the answer repeats, and JSON makes six bytes of some
// characters. An API server's has 36.
const maxUID = 64

// serveReview serves the webhook.
func serveReview(w http.ResponseWriter, r *http.Request) {
	body, err := readReview(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var asked struct {
		Request admissionRequest `json:"request"`
	}
	err = json.Unmarshal(body, &asked)
	if err == nil && len(asked.Request.UID) > maxUID {
		err = errTooLarge
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	response := review(&asked.Request)
	if err := response.Complete(admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{UID: asked.Request.UID}}); err != nil {
		response = admission.Errored(http.StatusInternalServerError, err)
	}
	answer := admissionv1.AdmissionReview{Response: &response.AdmissionResponse}
	answer.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // fails only with the client's connection
}

var errTooLarge = errors.New("the review is too large")

// readReview reads a body into as much memory as it has bytes.
func readReview(r *http.Request) ([]byte, error) {
	size := r.ContentLength
	if size < 0 { // not known
		size = maxReviewBytes
	}
	if size > maxReviewBytes {
		return nil, errTooLarge
	}
	body := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	if n, err := body.ReadFrom(io.LimitReader(r.Body, size+1)); err != nil {
		return nil, fmt.Errorf("the review can't be read: %w", err)
	} else if n > size {
		return nil, errTooLarge
	}
	return body.Bytes(), nil
}

// review responds to one request of the hub's API server: to create a Job, in the namespaces that
// the webhook configuration selects, or to update one, of which the user has left out managedBy.
func review(request *admissionRequest) admission.Response {
	if request.Resource != jobs || request.SubResource != "" {
		return admission.Allowed("")
	}
	var written, old jobFields
	err := json.Unmarshal(request.Object, &written)
	if request.Operation == admissionv1.Update && err == nil {
		err = json.Unmarshal(request.OldObject, &old)
	}
	labels, foreign := written.Metadata.Labels, false
	if err == nil {
		foreign, err = isForeign(labels)
	}
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
	// them. A change would part the two too early: without labels, the Job gets them again. API
	// servers sort labels, and leave out empty ones.
	if request.Operation == admissionv1.Create && len(labels) > len("null") && bytes.Equal(labels, written.Spec.Template.Metadata.Labels) {
		patch = append(patch, jsonpatch.NewOperation("remove", "/metadata/labels", nil))
	}
	return admission.Patched("", patch...)
}
