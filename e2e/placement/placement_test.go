package main

import (
	"testing"

	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

// Some pairs with every run of the tests; `make placement-judge` plays more, with more releases.
// Without being asked for a release, it takes the newest: its packages are those that its control
// plane is built from, and `make rig-build` has compiled all of them.
func TestSomePairs(t *testing.T) {
	release := binaries.Worker(binaries.Releases()[0])
	if err := compare(t.Context(), t.Output(), string(release), 1, counts{200, 100, 16}); err != nil {
		t.Error(err)
	}
}
