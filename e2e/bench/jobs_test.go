package bench

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
)

func TestEach(t *testing.T) {
	var mu sync.Mutex
	var done []string
	err := each(t.Context(), 3, names(20), func(_ context.Context, name string) error {
		mu.Lock()
		defer mu.Unlock()
		done = append(done, name)
		return nil
	})
	slices.Sort(done)
	if err != nil || !slices.Equal(done, names(20)) {
		t.Errorf("error %v, done %v", err, done)
	}
}

func TestEachStopsAtAnError(t *testing.T) {
	refused := errors.New("refused")
	for _, failing := range []string{"job-00000", "job-00010", "job-00019"} {
		err := each(t.Context(), 4, names(20), func(_ context.Context, name string) error {
			if name == failing {
				return refused
			}
			return nil
		})
		if !errors.Is(err, refused) {
			t.Errorf("%s: got %v", failing, err)
		}
	}
}
