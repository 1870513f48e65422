package show

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	accounts "github.com/jobferry/jobferry/pkg/usage"
)

// NamespaceUsage is what a namespace used of one resource of one worker.
type NamespaceUsage struct {
	Namespace string
	accounts.Usage
	// Cost of it; zero: the worker has no price for the resource.
	Cost float64
}

// Usage is the table of what namespaces used, in hours. Without namespaces the column is left out.
func Usage(all []NamespaceUsage, namespaces bool) Table {
	t := Table{Header: []string{"WORKER", "RESOURCE", "HOURS", "REPEATED", "COST"}}
	if namespaces {
		t.Header = append([]string{"NAMESPACE"}, t.Header...)
	}
	slices.SortStableFunc(all, func(a, b NamespaceUsage) int { return strings.Compare(a.Namespace, b.Namespace) })
	for _, u := range all {
		name, unit := resourceAndUnit(u.Resource)
		cost := none
		if u.Cost > 0 {
			cost = fmt.Sprintf("%.2f", u.Cost)
		}
		cells := row(Printable(u.Worker), name, hours(u.Total/unit), hours(u.Repeated/unit), cost)
		if namespaces {
			cells = append(row(Printable(u.Namespace)), cells...)
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

// resourceAndUnit is how a resource is named, and by what its amount is divided.
func resourceAndUnit(name corev1.ResourceName) (title string, unit float64) {
	title, unit = Printable(string(name)), v1alpha1.UnitOf(name)
	if unit > 1 {
		title += " (GiB)"
	}
	return title, unit
}

// hours of some seconds, with two digits that say something.
func hours(seconds float64) string {
	switch h := seconds / 3600; {
	case h == 0:
		return "0"
	case h < 1:
		return fmt.Sprintf("%.2g", h)
	default:
		return fmt.Sprintf("%.2f", h)
	}
}
