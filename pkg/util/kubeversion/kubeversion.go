// Package kubeversion compares releases of Kubernetes.
package kubeversion

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// Version is a Kubernetes minor version.
type Version struct {
	Major, Minor uint
}

// Parse reads a server's git version, such as "v1.33.4" or "v1.33.4-eks-1a2b3c".
func Parse(gitVersion string) (Version, error) {
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
