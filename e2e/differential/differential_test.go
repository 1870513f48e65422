package main

import (
	"testing"
)

// A few seeds with every run of the tests; `make differential` plays more.
func TestSomeSeeds(t *testing.T) {
	if err := compare(t.Context(), t.Output(), 1, 20, 20, false); err != nil {
		t.Error(err)
	}
}
