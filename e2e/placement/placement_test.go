package main

import (
	"testing"

	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

// Some pairs with every run of the tests; `make placement-judge` plays more, with more releases. The
// newest release's packages are those that its control plane is built from: `make rig-build` has
// compiled all of them.
func TestSomePairs(t *testing.T) {
	newest := binaries.Releases()[0]
	if err := compare(t.Context(), t.Output(), string(newest), 1, 200, 16); err != nil {
		t.Error(err)
	}
}
