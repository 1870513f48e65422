// Package revision reads the newest resourceVersion that a cluster has of a kind, by a list that
// costs it next to nothing. A Guard ends a process whose cluster goes back to an earlier one.
//
// A list without a resourceVersion is a consistent read: none shows an earlier state than the one
// before. One that names an object that there is not costs a lookup of one key. A limit would do
// so, too, but some API servers would then go past their watch cache, instead of bringing it up to
// date for informers.
//
// https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list
package revision

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Namespace is where no object has the name that Selector asks for.
const Namespace = metav1.NamespaceSystem

// Selector selects nothing.
func Selector() fields.Selector {
	return fields.OneTermEqualSelector("metadata.name", "jobferry-probe")
}

// Read returns the newest resourceVersion of the kind of a list, which has no items afterwards. The
// reader must be without a cache.
func Read(ctx context.Context, live client.Reader, list client.ObjectList) (string, error) {
	err := live.List(ctx, list, client.InNamespace(Namespace), client.MatchingFieldsSelector{Selector: Selector()})
	return list.GetResourceVersion(), err
}
