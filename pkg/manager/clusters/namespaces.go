package clusters

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Namespaces selects the namespaces of the hub whose Jobs the worker takes, by their labels; nil:
// all that are dispatched. With an error it selects none: what an admin wanted to restrict isn't
// open to all.
func (s Settings) Namespaces() (labels.Selector, error) {
	if s.Spec.NamespaceSelector == nil {
		return nil, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(s.Spec.NamespaceSelector)
	if err != nil {
		return labels.Nothing(), fmt.Errorf("spec.namespaceSelector: %w", err)
	}
	return selector, nil
}

func hasInvalidNamespaces(v View) bool {
	_, err := v.Namespaces()
	return err != nil
}
