package admission

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/util/costtest"
)

func TestReview(t *testing.T) {
	update := func(old string) func(*admissionRequest) {
		return func(r *admissionRequest) {
			r.Operation, r.OldObject = admissionv1.Update, []byte(old)
		}
	}
	rows := map[string]struct {
		object string
		edit   func(*admissionRequest)
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
		"a status":                      {object: `{"spec":{}}`, edit: func(r *admissionRequest) { r.SubResource = "status" }, code: http.StatusOK},
		"another kind":                  {object: `{"spec":{}}`, edit: func(r *admissionRequest) { r.Resource.Resource = "pods" }, code: http.StatusOK},
		"a label of another name": {
			object: `{"metadata":{"labels":{"jobferry.dev/Origin":"h"}},"spec":{}}`,
			patch:  `[{"op":"add","path":"/spec/managedBy","value":"jobferry.dev/dispatcher"}]`, code: http.StatusOK,
		},
		"no Job at all":        {object: `[]`, code: http.StatusBadRequest},
		"labels that are none": {object: `{"metadata":{"labels":[1]}}`, code: http.StatusBadRequest},
		"no labels": {
			object: `{"metadata":{"labels":null},"spec":{"template":{"metadata":{"labels":null}}}}`,
			patch:  `[{"op":"add","path":"/spec/managedBy","value":"jobferry.dev/dispatcher"}]`, code: http.StatusOK,
		},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			request := &admissionRequest{
				Resource:  metav1.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"},
				Operation: admissionv1.Create, Object: []byte(row.object),
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

// reviews has the webhook serve a body, and returns its answer.
func reviews(t *testing.T, body string, edits ...func(*http.Request)) (int, admissionv1.AdmissionReview) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	for _, edit := range edits {
		edit(r)
	}
	w := httptest.NewRecorder()
	limited(http.HandlerFunc(serveReview)).ServeHTTP(w, r)
	var answer admissionv1.AdmissionReview
	if w.Code == http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
	}
	return w.Code, answer
}

func TestServeReview(t *testing.T) {
	const body = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","operation":"CREATE",` +
		`"resource":{"group":"batch","version":"v1","resource":"jobs"},"object":{"spec":{}}}}`
	for name, edit := range map[string]func(*http.Request){
		"its length is known": func(*http.Request) {}, "it isn't": func(r *http.Request) { r.ContentLength = -1 },
	} {
		code, got := reviews(t, body, edit)
		if code != http.StatusOK || got.Kind != "AdmissionReview" || got.APIVersion != "admission.k8s.io/v1" || got.Response.UID != "u" || !got.Response.Allowed ||
			*got.Response.PatchType != admissionv1.PatchTypeJSONPatch || string(got.Response.Patch) != `[{"op":"add","path":"/spec/managedBy","value":"jobferry.dev/dispatcher"}]` {
			t.Errorf("%s: %d, %+v", name, code, got)
		}
	}
	for name, body := range map[string]string{"no JSON": `{"request":`, "another form": `[]`, "too large": strings.Repeat(" ", maxReviewBytes+1)} {
		if code, _ := reviews(t, body); code != http.StatusBadRequest {
			t.Errorf("%s: %d", name, code)
		}
	}
}

// TestLargeReviewsTakeLittleMemory: a stranger's review has very many labels, or is of a user who
// is in very many groups, or has a very long UID.
func TestLargeReviewsTakeLittleMemory(t *testing.T) {
	const most = 32 << 20
	var labels []string
	for i := range 600_000 {
		labels = append(labels, fmt.Sprintf(`"%x":""`, i))
	}
	all := strings.Join(labels, ",")[:6_500_000]
	all = all[:strings.LastIndex(all, ",")]
	for name, part := range map[string]string{
		"a UID":  `"uid":"` + strings.Repeat("<", 6_500_000) + `","object":{"spec":{}}`,
		"labels": `"object":{"metadata":{"labels":{` + all + `}},"spec":{}}`,
		"groups": `"object":{"spec":{}},"userInfo":{"groups":[` + strings.Repeat(`"",`, 2_000_000) + `""]}`,
		"an old Job": `"object":{"metadata":{"labels":{` + all[:3_000_000] + `":""}},"spec":{}},` +
			`"oldObject":{"metadata":{"labels":{` + all[:3_000_000] + `":""}},"spec":{"managedBy":"jobferry.dev/dispatcher"}}`,
	} {
		body := `{"request":{"operation":"UPDATE","resource":{"group":"batch","version":"v1","resource":"jobs"},"oldObject":{},` + part + `}}`
		var code int
		took := costtest.Of(func() { code, _ = reviews(t, body) })
		t.Logf("%s: %d KiB for %d KiB", name, took>>10, len(body)>>10)
		if took > most || (code == http.StatusOK) != (name != "a UID") {
			t.Errorf("%s: %d, %d MiB are allocated", name, code, took>>20)
		}
	}
}
