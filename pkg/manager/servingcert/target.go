package servingcert

import (
	"bytes"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Target is an object into which the caBundle is injected. It may be missing.
type Target struct {
	kind, name string
	empty      func() client.Object
	// bundles are the caBundle fields of the object.
	bundles func(client.Object) []*[]byte
}

// MutatingWebhooks are all webhooks of a MutatingWebhookConfiguration.
func MutatingWebhooks(name string) Target {
	return Target{"MutatingWebhookConfiguration", name,
		func() client.Object { return &admissionv1.MutatingWebhookConfiguration{} },
		func(o client.Object) (places []*[]byte) {
			hooks := o.(*admissionv1.MutatingWebhookConfiguration).Webhooks
			for i := range hooks {
				places = append(places, &hooks[i].ClientConfig.CABundle)
			}
			return places
		}}
}

// APIService is an APIService of the hub's aggregation layer.
func APIService(name string) Target {
	return Target{"APIService", name,
		func() client.Object { return &apiregistrationv1.APIService{} },
		func(o client.Object) []*[]byte {
			return []*[]byte{&o.(*apiregistrationv1.APIService).Spec.CABundle}
		}}
}

// String implements fmt.Stringer.
func (t Target) String() string { return t.kind + " " + t.name }

// inject sets the bundle in the object, and reports whether that changed it.
func (t Target) inject(o client.Object, bundle []byte) (changed bool) {
	for _, place := range t.bundles(o) {
		if !bytes.Equal(*place, bundle) {
			*place, changed = bytes.Clone(bundle), true
		}
	}
	return changed
}

// trusted returns the bundles in the object.
func (t Target) trusted(o client.Object) (bundles [][]byte) {
	for _, place := range t.bundles(o) {
		bundles = append(bundles, *place)
	}
	return bundles
}
