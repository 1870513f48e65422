package link

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Of a 404, only an API server's says that something isn't there: a proxy before it that has lost
// its way says nothing of a mirror, nor of the Lease of who may write.
func TestOnlyAnAPIServersAnswerSaysThatThereIsNothing(t *testing.T) {
	cluster, l := connectedLink(t)
	for name, row := range map[string]struct {
		contentType, body string
		says              bool
	}{
		"a proxy's":          {"text/plain; charset=utf-8", "404 page not found\n", false},
		"a proxy's, in HTML": {"text/html", "<html><body>nginx</body></html>", false},
		"a proxy's, in JSON": {jsonType, `{"error":"no route"}`, false},
		"a proxy's, empty":   {"", "", false},
		"no failure":         {jsonType, `{"kind":"Status","apiVersion":"v1","status":"Success"}`, false},
		"an API server's":    {jsonType, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`, true},
	} {
		for _, kind := range []string{"get train", "get jobs", "post jobs", "put train", "patch train", "patch status", "delete train", "post token"} {
			cluster.Answer(kind, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", row.contentType)
				w.WriteHeader(http.StatusNotFound)
				fmt.Fprint(w, row.body)
			})
		}
		for client, c := range map[string]client.Client{"Jobs": l.Client(), "Leases": l.LeaseClient()} {
			for verb, err := range everyVerb(t, c) {
				if err == nil || apierrors.IsNotFound(err) != row.says {
					t.Errorf("%s, %s of %s: %v", name, verb, client, err)
				}
				if want := "check what answers at the kubeconfig's server"; err != nil && !row.says && !strings.Contains(err.Error(), want) {
					t.Errorf("%s, %s of %s: %v doesn't say %q", name, verb, client, err, want)
				}
			}
		}
	}
}

// everyVerb is what becomes of each request about a Job, or an account, of the name train.
func everyVerb(t *testing.T, c client.Client) map[string]error {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: "team", Name: "train"}
	job, patch := func() *batchv1.Job { return &batchv1.Job{ObjectMeta: meta} }, client.RawPatch("application/merge-patch+json", []byte(`{}`))
	whole := &metav1.PartialObjectMetadata{ObjectMeta: meta}
	whole.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("Job"))
	return map[string]error{
		"get":          c.Get(t.Context(), client.ObjectKeyFromObject(job()), job()),
		"get metadata": c.Get(t.Context(), client.ObjectKeyFromObject(job()), whole),
		"list":         c.List(t.Context(), &batchv1.JobList{}),
		"create":       c.Create(t.Context(), job()),
		"update":       c.Update(t.Context(), job()),
		"patch":        c.Patch(t.Context(), job(), patch),
		"patch status": c.Status().Patch(t.Context(), job(), patch),
		"delete":       c.Delete(t.Context(), job()),
		"create token": c.SubResource("token").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: meta}, &authenticationv1.TokenRequest{}),
	}
}
