package measure

import (
	"slices"
	"testing"
	"time"
)

func TestQuantilesOf(t *testing.T) {
	hundred := make([]int, 100)
	for i := range hundred {
		hundred[i] = i + 1
	}
	slices.Reverse(hundred)
	for name, c := range map[string]struct {
		ms   []int
		want Quantiles
	}{
		"none":      {nil, Quantiles{}},
		"one":       {[]int{7}, Quantiles{1, 7, 7, 7, 7}},
		"two":       {[]int{9, 3}, Quantiles{2, 3, 9, 9, 9}},
		"a hundred": {hundred, Quantiles{100, 50, 90, 99, 100}},
	} {
		t.Run(name, func(t *testing.T) {
			want := c.want
			for _, d := range []*time.Duration{&want.P50, &want.P90, &want.P99, &want.Max} {
				*d *= time.Millisecond
			}
			if got := QuantilesOf(millis(c.ms...)); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}
