package main

import "testing"

// Some pairs with every run of the tests; `make placement-judge` plays more, with more releases.
func TestSomePairs(t *testing.T) {
	if err := compare(t.Context(), t.Output(), "1.36", 1, 200, 16); err != nil {
		t.Error(err)
	}
}
