package admission_test

import (
	"testing"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// The names of the clusters: a hub that has MutatingAdmissionPolicies, and one that hasn't.
const (
	newHub = "hub"
	oldHub = "old"
)

func TestMain(m *testing.M) {
	rigtest.Main(m,
		rig.Options{Name: newHub, Release: binaries.Hub(binaries.Current)},
		rig.Options{Name: oldHub, Release: binaries.Hub(binaries.Oldest)})
}
