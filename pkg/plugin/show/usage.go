package show

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	accounts "github.com/jobferry/jobferry/pkg/manager/usage"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// NamespaceUsage is what a namespace used of one resource of one worker.
type NamespaceUsage struct {
	Namespace string
	accounts.Usage
	// Cost of it; zero: the worker has no price for the resource.
	Cost float64
}

// UsedBy is what a Job used by its account, if it runs, or ended within some time.
func UsedBy(job *batchv1.Job, now time.Time, within time.Duration) []accounts.Usage {
	if end := mirror.EndedAt(job); !end.IsZero() && now.Sub(end) > within {
		return nil
	}
	return accounts.Read(job).At(now)
}

// Usage is the table of what namespaces used, in hours. Without namespaces the column is left out.
func Usage(all []NamespaceUsage, namespaces bool) Table {
	t := Table{Header: []string{"WORKER", "RESOURCE", "HOURS", "REPEATED", "UNKNOWN", "COST"}}
	if namespaces {
		t.Header = append([]string{"NAMESPACE"}, t.Header...)
	}
	slices.SortStableFunc(all, func(a, b NamespaceUsage) int { return strings.Compare(a.Namespace, b.Namespace) })
	for _, u := range all {
		cost := none
		if u.Cost > 0 {
			cost = Short(u.Cost)
		}
		cells := row(Printable(u.Worker), ResourceTitle(u.Resource), Hours(u.Resource, u.Total), Hours(u.Resource, u.Repeated),
			Hours(u.Resource, u.Unknown), cost)
		if namespaces {
			cells = append(row(Printable(u.Namespace)), cells...)
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

// ResourceTitle is how a resource is named, with the unit of its hours.
func ResourceTitle(name corev1.ResourceName) string {
	title := Printable(string(name))
	if v1alpha1.UnitOf(name) > 1 {
		title += " (GiB)"
	}
	return title
}

// Hours are the hours of some seconds of a resource.
func Hours(name corev1.ResourceName, seconds float64) string {
	return Short(seconds / v1alpha1.UnitOf(name) / time.Hour.Seconds())
}

// Short writes a number with two digits after the point, or with the first two that aren't 0.
func Short(n float64) string {
	switch {
	case n == 0:
		return "0"
	case n < 0.001:
		return "<0.001"
	case n < 1:
		return fmt.Sprintf("%.2g", n)
	default:
		return fmt.Sprintf("%.2f", n)
	}
}
