package capacity

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestSpread(t *testing.T) {
	tests := []struct {
		name  string
		free  []int64
		count int64
		want  []int64
	}{
		{"no nodes", nil, 3, nil},
		{"nothing free", []int64{0, 0}, 3, []int64{0, 0}},
		{"nothing", []int64{2, 1}, 0, []int64{0, 0}},
		{"one, on the emptiest", []int64{1, 3, 2}, 1, []int64{0, 1, 0}},
		{"one, on the first of the emptiest", []int64{2, 3, 3}, 1, []int64{0, 1, 0}},
		{"evenly", []int64{5, 3, 1}, 5, []int64{4, 1, 0}},
		{"all there is", []int64{2, 1}, 3, []int64{2, 1}},
		{"more than there is", []int64{2, 1}, 9, []int64{2, 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := spread(test.free, test.count); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestSpreadIsEven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		free := rapid.SliceOfN(rapid.Int64Range(0, 20), 1, 8).Draw(t, "free")
		count := rapid.Int64Range(0, 100).Draw(t, "count")
		taken := spread(free, count)
		if got := total(taken, 0); got != min(count, total(free, 0)) {
			t.Fatalf("%d taken of %v", got, free)
		}
		for i, n := range taken {
			if n < 0 || n > free[i] {
				t.Fatalf("%v taken of %v", taken, free)
			}
			for k := range free {
				if n > 0 && free[i]-n+1 < free[k]-taken[k] {
					t.Fatalf("%v taken of %v: one of %d would be better off on %d", taken, free, i, k)
				}
			}
		}
	})
}
