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
	for _, u := range byNamespace(all) {
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

// ResourceTitle is how a resource is named, with the unit of what was used of it.
func ResourceTitle(name corev1.ResourceName) string {
	unit := "hours"
	switch {
	case name == corev1.ResourceCPU:
		unit = "CPU-hours"
	case v1alpha1.UnitOf(name) > 1:
		unit = "GiB-hours"
	}
	return fmt.Sprintf("%s (%s)", Printable(string(name)), unit)
}

// Hours are the hours of some seconds of a resource.
func Hours(name corev1.ResourceName, seconds float64) string {
	return Short(hoursOf(name, seconds))
}

func hoursOf(name corev1.ResourceName, seconds float64) float64 {
	return seconds / v1alpha1.UnitOf(name) / time.Hour.Seconds()
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

// UsageReport is what namespaces used, for programs.
type UsageReport struct {
	Items []ReportedUsage `json:"items"`
}

// ReportedUsage is what a namespace used of one resource of one worker. Of memory and the like, the
// hours are of a GiB.
type ReportedUsage struct {
	Namespace     string              `json:"namespace"`
	Worker        string              `json:"worker"`
	Resource      corev1.ResourceName `json:"resource"`
	Unit          string              `json:"unit,omitempty"`
	Hours         float64             `json:"hours"`
	RepeatedHours float64             `json:"repeatedHours"`
	UnknownHours  float64             `json:"unknownHours"`
	// Cost is absent if the worker has no price for the resource.
	Cost *float64 `json:"cost,omitempty"`
}

// UsageReportOf is the report of what namespaces used.
func UsageReportOf(all []NamespaceUsage) UsageReport {
	report := UsageReport{Items: []ReportedUsage{}}
	for _, u := range byNamespace(all) {
		hours := func(seconds float64) float64 { return hoursOf(u.Resource, seconds) }
		is := ReportedUsage{
			Namespace: u.Namespace, Worker: u.Worker, Resource: u.Resource,
			Hours: hours(u.Total), RepeatedHours: hours(u.Repeated), UnknownHours: hours(u.Unknown),
		}
		if v1alpha1.UnitOf(u.Resource) > 1 {
			is.Unit = "GiB"
		}
		if u.Cost > 0 {
			is.Cost = &u.Cost
		}
		report.Items = append(report.Items, is)
	}
	return report
}

func byNamespace(all []NamespaceUsage) []NamespaceUsage {
	return slices.SortedStableFunc(slices.Values(all), func(a, b NamespaceUsage) int { return strings.Compare(a.Namespace, b.Namespace) })
}
