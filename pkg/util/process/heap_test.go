package process

import "testing"

func TestPercentOf(t *testing.T) {
	for live, want := range map[uint64]int{
		0: 900, 1 << 20: 900, 16 << 20: 300, 24 << 20: 150, 32 << 20: 100, 64 << 20: 100, 1 << 30: 100,
	} {
		if got := percentOf(live); got != want {
			t.Errorf("%d bytes: %d%%, want %d%%", live, got, want)
		}
	}
}
