package placement

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/version"

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
	// Cordoned keeps new Jobs away.
	Cordoned bool
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
	// Version of Kubernetes there. Zero when unknown: then no Job is refused for its features.
	Version Version
	// Drops are the paths of recent fields that the cluster was found to drop of a Job's spec.
	Drops map[string]bool
	// JobController that runs the mirrors there. Empty is BuiltIn.
	JobController v1alpha1.JobController
	// Capacity is what the cluster's scheduler knows, as far as it concerns the Job. Nil when unknown or
	// not checked: then every Job fits.
	Capacity *scheduling.Snapshot
}

// Version is a Kubernetes minor version.
type Version struct {
	Major, Minor uint
}

// ParseVersion reads a server's git version, such as "v1.33.4" or "v1.33.4-eks-1a2b3c".
func ParseVersion(gitVersion string) (Version, error) {
	parsed, err := version.ParseGeneric(gitVersion)
	if err != nil {
		return Version{}, fmt.Errorf("kubernetes version %q: %w", gitVersion, err)
	}
	return Version{Major: parsed.Major(), Minor: parsed.Minor()}, nil
}

// IsZero reports whether the version is unknown.
func (v Version) IsZero() bool { return v == Version{} }

// Less reports whether v came before o.
func (v Version) Less(o Version) bool {
	if v.Major != o.Major {
		return v.Major < o.Major
	}
	return v.Minor < o.Minor
}

// String is "1.33", or "unknown".
func (v Version) String() string {
	if v.IsZero() {
		return "unknown"
	}
	return fmt.Sprintf("%d.%d", v.Major, v.Minor)
}
