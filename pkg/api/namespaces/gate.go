package namespaces

import (
	"fmt"
	"strings"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// Gate says which namespaces of the hub have their Jobs dispatched.
type Gate struct {
	// Own is the manager's namespace.
	Own string
	// All: every namespace counts as labelled with v1alpha1.DispatchAllowed.
	All bool
}

// Closed says why the Jobs of a namespace are not dispatched, and the way out; empty: those that
// name the dispatcher are.
func (g Gate) Closed(name string, labels map[string]string) string {
	value, labelled := labels[v1alpha1.LabelDispatch]
	switch {
	case g.isNever(name):
		return fmt.Sprintf("Jobs of namespace %s are never dispatched, whatever its labels: create the Job in another namespace", name)
	case g.All, value == v1alpha1.DispatchEnabled, value == v1alpha1.DispatchAllowed:
		return ""
	case labelled:
		return fmt.Sprintf("namespace %s is not dispatched: its label %s is %q, and must be %s or %s",
			name, v1alpha1.LabelDispatch, value, v1alpha1.DispatchAllowed, v1alpha1.DispatchEnabled)
	default:
		return fmt.Sprintf("namespace %s is not dispatched: to allow it, an admin of the hub labels it %s=%s (or %s, for all its new Jobs)",
			name, v1alpha1.LabelDispatch, v1alpha1.DispatchAllowed, v1alpha1.DispatchEnabled)
	}
}

// isNever reports whether a namespace belongs to a cluster, and not to its users: in the workers,
// its namesake holds what runs the worker.
func (g Gate) isNever(name string) bool {
	return strings.HasPrefix(name, "kube-") || name == g.Own || name == v1alpha1.SystemNamespace
}
