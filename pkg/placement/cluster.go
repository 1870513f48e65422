package placement

import (
	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement/internal/scheduling"
)

// Cluster is a worker cluster as placement sees it.
type Cluster struct {
	// Name of the WorkerCluster.
	Name string
	// Labels of the WorkerCluster, which cluster selectors match.
	Labels labels.Set
	// Namespaces selects the namespaces of the hub whose Jobs the cluster takes, by their labels.
	// Nil matches all.
	Namespaces labels.Selector
	// Ready: the cluster takes mirrors.
	Ready bool
	// NotReady is the reason of the Ready condition while Ready is false, such as "Unreachable".
	NotReady string
	// Cordoned keeps new Jobs away, and Drained those that run, too.
	Cordoned, Drained bool
	// Full: it has as many Jobs as it may have, and takes no new ones either.
	Full bool
	// Reserved: what is free there is for a Job that goes before the one that asks.
	Reserved bool
	// StockedOut: Pods like those of the Job that asks didn't start there in time.
	StockedOut bool
	// Weight multiplies the cluster's score. Below 1 counts as 1, the default.
	Weight int32
	// Cost of its resources. Of those where the Job can start alike, the cheapest goes first.
	Cost v1alpha1.Cost
	// Minor is the version of Kubernetes there, 1.Minor. Zero when unknown: then no Job is refused for
	// its features.
	Minor int
	// Drops are the paths of recent fields that the cluster was found to drop of a Job's spec.
	Drops map[string]bool
	// JobController that runs the mirrors there. Empty is BuiltIn.
	JobController v1alpha1.JobController
	// Capacity is what the cluster's scheduler knows, as far as it concerns the Job. Nil when unknown
	// or not checked: then every Job fits.
	Capacity *scheduling.Snapshot
}
