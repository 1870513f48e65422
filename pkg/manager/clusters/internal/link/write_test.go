package link

import (
	"errors"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// While another manager may write to a worker, requests on behalf of Jobs only read, whatever they
// write. What finds out whether it may passes.
func TestWritesWhileAnotherMayWrite(t *testing.T) {
	_, l := connectedLink(t)
	may := true
	l.options.MayWrite = func() bool { return may }
	job := func(name string) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
	}
	writes := func(c client.Client, name string) map[string]error {
		part := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`))
		return map[string]error{
			"create":       c.Create(t.Context(), job(name)),
			"patch":        c.Patch(t.Context(), job("there"), part),
			"patch status": c.Status().Patch(t.Context(), job("there"), part),
			"delete":       c.Delete(t.Context(), job(name)),
		}
	}
	for _, o := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}, job("there")} {
		if err := l.Client().Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	may = false
	for write, err := range writes(l.Client(), "made") {
		if !errors.Is(err, ErrNotConnected) {
			t.Errorf("%s: %v", write, err)
		}
	}
	if err := l.Client().Get(t.Context(), client.ObjectKeyFromObject(job("there")), job("there")); err != nil {
		t.Errorf("read: %v", err)
	}
	for write, err := range writes(l.LeaseClient(), "lease") {
		if err != nil {
			t.Errorf("%s of a Lease: %v", write, err)
		}
	}
	may = true
	for write, err := range writes(l.Client(), "made") {
		if err != nil {
			t.Errorf("%s again: %v", write, err)
		}
	}
}
