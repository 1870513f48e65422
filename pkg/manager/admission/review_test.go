package admission

import (
	"encoding/json"
	"net/http"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestReview(t *testing.T) {
	update := func(old string) func(*admissionv1.AdmissionRequest) {
		return func(r *admissionv1.AdmissionRequest) {
			r.Operation, r.OldObject.Raw = admissionv1.Update, []byte(old)
		}
	}
	rows := map[string]struct {
		object string
		edit   func(*admissionv1.AdmissionRequest)
		patch  string // empty: none
		code   int32
	}{
		"an ordinary Job":     {object: `{"spec":{}}`, patch: `[{"op":"add","path":"/spec/managedBy","value":"jobferry.dev/dispatcher"}]`, code: http.StatusOK},
		"a field of tomorrow": {object: `{"spec":{"tomorrow":{"x":1}}}`, patch: `[{"op":"add","path":"/spec/managedBy","value":"jobferry.dev/dispatcher"}]`, code: http.StatusOK},
		"with the labels of its Pods": {
			object: `{"metadata":{"labels":{"a":"b"}},"spec":{"template":{"metadata":{"labels":{"a":"b"}}}}}`,
			patch:  `[{"op":"add","path":"/spec/managedBy","value":"jobferry.dev/dispatcher"},{"op":"remove","path":"/metadata/labels"}]`, code: http.StatusOK,
		},
		"with labels of its own": {
			object: `{"metadata":{"labels":{"a":"c"}},"spec":{"template":{"metadata":{"labels":{"a":"b"}}}}}`,
			patch:  `[{"op":"add","path":"/spec/managedBy","value":"jobferry.dev/dispatcher"}]`, code: http.StatusOK,
		},
		"managed by another":            {object: `{"spec":{"managedBy":"example.org/x"}}`, code: http.StatusOK},
		"kept on the hub":               {object: `{"spec":{"managedBy":"kubernetes.io/job-controller"}}`, code: http.StatusOK},
		"another hub's mirror":          {object: `{"metadata":{"labels":{"jobferry.dev/origin":"h"}},"spec":{}}`, code: http.StatusOK},
		"left out of an update":         {object: `{"spec":{}}`, edit: update(`{"spec":{"managedBy":"jobferry.dev/dispatcher"}}`), patch: `[{"op":"add","path":"/spec/managedBy","value":"jobferry.dev/dispatcher"}]`, code: http.StatusOK},
		"changed by an update":          {object: `{"spec":{"managedBy":"example.org/x"}}`, edit: update(`{"spec":{"managedBy":"jobferry.dev/dispatcher"}}`), code: http.StatusOK},
		"an update of another's":        {object: `{"spec":{}}`, edit: update(`{"spec":{"managedBy":"example.org/x"}}`), code: http.StatusOK},
		"an update of the hub's own":    {object: `{"spec":{}}`, edit: update(`{"spec":{}}`), code: http.StatusOK},
		"an update of what isn't a Job": {object: `{"spec":{}}`, edit: update(`[]`), code: http.StatusBadRequest},
		"a status":                      {object: `{"spec":{}}`, edit: func(r *admissionv1.AdmissionRequest) { r.SubResource = "status" }, code: http.StatusOK},
		"another kind":                  {object: `{"spec":{}}`, edit: func(r *admissionv1.AdmissionRequest) { r.Resource.Resource = "pods" }, code: http.StatusOK},
		"no Job at all":                 {object: `[]`, code: http.StatusBadRequest},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			request := &admissionv1.AdmissionRequest{
				Resource:  metav1.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"},
				Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(row.object)},
			}
			if row.edit != nil {
				row.edit(request)
			}
			got := review(request)
			if got.Allowed != (row.code == http.StatusOK) || got.Result.Code != row.code {
				t.Errorf("allowed %t, code %d", got.Allowed, got.Result.Code)
			}
			patch := ""
			if len(got.Patches) > 0 {
				text, err := json.Marshal(got.Patches)
				if err != nil {
					t.Fatal(err)
				}
				patch = string(text)
			}
			if patch != row.patch {
				t.Errorf("patch %s, want %s", patch, row.patch)
			}
		})
	}
}
