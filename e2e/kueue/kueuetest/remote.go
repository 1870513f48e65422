package kueuetest

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/e2e/kueue/program"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// Quantity parses a quantity; it panics if it isn't one.
func Quantity(text string) resource.Quantity { return resource.MustParse(text) }

// SecretInKueue puts a kubeconfig into a Secret of Kueue's namespace that Jobferry may use.
func (f *Fixture) SecretInKueue(name string, kubeconfig []byte) {
	f.t.Helper()
	f.LabeledSecretInKueue(name, kubeconfig, map[string]string{v1alpha1.LabelMultiKueueKubeconfig: "true"})
}

// LabeledSecretInKueue puts a kubeconfig into a Secret of Kueue's namespace.
func (f *Fixture) LabeledSecretInKueue(name string, kubeconfig []byte, labels map[string]string) {
	f.t.Helper()
	secrets := f.Hub.Client().CoreV1().Secrets(program.Namespace)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Data:       map[string][]byte{"kubeconfig": kubeconfig},
	}
	_, err := secrets.Create(f.Context(), secret, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = secrets.Update(f.Context(), secret, metav1.UpdateOptions{})
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// Annotate changes an annotation of a cluster-scoped object of Kueue, to have it reconciled.
func (f *Fixture) Annotate(kind, name string) {
	f.t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.org/edited":%q}}}`, time.Now().Format(time.RFC3339Nano))
	err := f.API().Patch(types.MergePatchType).Resource(kind).Name(name).Body(patch).Do(f.Context()).Error()
	if err != nil {
		f.t.Fatal(err)
	}
}
