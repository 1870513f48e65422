package plugin

import (
	"context"
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/registration"
)

// Of two concurrent rotations, one fails: it would revoke the other's token.
func TestHandOverIsConditional(t *testing.T) {
	kubeconfig, err := registration.Endpoint{Server: "https://west:6443"}.Kubeconfig("west", "old")
	if err != nil {
		t.Fatal(err)
	}
	before := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "jobferry-system", Name: "west", UID: "the-secret"},
		Data:       map[string][]byte{v1alpha1.KubeconfigKey: kubeconfig},
	}
	var applied struct{ Metadata metav1.ObjectMeta }
	hub := interceptor.NewClient(fake.NewClientBuilder().WithScheme(access.Scheme).WithObjects(before).Build(), interceptor.Funcs{
		Apply: func(_ context.Context, _ client.WithWatch, manifest runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			content, err := json.Marshal(manifest)
			if err != nil {
				return err
			}
			return json.Unmarshal(content, &applied)
		},
	})
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	r := &registrar{cli: &cli{IOStreams: streams}, hub: hub, request: registration.Request{Name: "west", Namespace: "jobferry-system", HubUID: "hub"}}
	if err := r.handOver(t.Context(), credentials{token: "new"}); err != nil {
		t.Fatal(err)
	}
	if applied.Metadata.UID != "the-secret" || applied.Metadata.ResourceVersion == "" {
		t.Errorf("applied without a condition: %+v", applied.Metadata)
	}
}

// A concurrent rotation revokes no token that the hub uses.
func TestRotateRevokesNobodyElsesToken(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "jobferry-system", Name: "west", Annotations: map[string]string{v1alpha1.AnnotationAccount: "jobferry-hub-theirs"},
	}}
	hub := fake.NewClientBuilder().WithScheme(access.Scheme).WithObjects(secret).Build()
	r := &registrar{hub: hub, request: registration.Request{Name: "west", Namespace: "jobferry-system", Account: "jobferry-hub-ours"}}
	if err := r.isCurrent(t.Context()); err == nil {
		t.Error("theirs would be revoked")
	}
	r.request.Account = "jobferry-hub-theirs"
	if err := r.isCurrent(t.Context()); err != nil {
		t.Error(err)
	}
}
