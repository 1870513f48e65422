package places

import (
	"context"
	"errors"
	"testing"
)

func TestPlaces(t *testing.T) {
	p := New(4, 2)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	enter := func(namespace string) func() {
		t.Helper()
		release, err := p.Acquire(t.Context(), namespace)
		if err != nil {
			t.Fatal(err)
		}
		return release
	}
	full := func(namespace string) {
		t.Helper()
		if release, err := p.Acquire(gone, namespace); err == nil {
			release()
			t.Errorf("%s has one more place", namespace)
		} else if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	first := enter("a")
	enter("a")
	full("a")
	enter("b")
	last := enter("c")
	full("d")
	first()
	first() // counts once
	enter("d")
	full("b")
	last()
	enter("b")
	if n := p.Holders(); n != 3 {
		t.Errorf("%d holders", n)
	}
}
