package ownwrite

import "testing"

func TestNewerVersion(t *testing.T) {
	for _, row := range []struct {
		a, b string
		want bool
	}{
		{"10", "9", true}, // not compared as text
		{"9", "10", false},
		{"10", "10", false},
		{"x", "9", false},
		{"10", "x", false},
		{"10", "", false},
	} {
		if got := NewerVersion(row.a, row.b); got != row.want {
			t.Errorf("%q newer than %q: %v", row.a, row.b, got)
		}
	}
}
