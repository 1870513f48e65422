package process

import (
	"os"
	"testing"
	"time"
)

func TestParseUsage(t *testing.T) {
	stat := "4242 (a (strange) name) S 1 4242 4242 0 -1 4194560 5000 0 0 0 250 75 0 0 20 0 9 0 1000 1000000 3000"
	status := "Name:\ta\nVmHWM:\t   2048 kB\nVmRSS:\t   1024 kB\n"
	got, err := parseUsage([]byte(stat), status)
	want := Usage{CPU: 3250 * time.Millisecond, RSS: 1 << 20, PeakRSS: 2 << 20}
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for name, c := range map[string]struct{ stat, status string }{
		"cut off":   {"4242 (a) S 1", status},
		"no number": {"4242 (a) S 1 4242 4242 0 -1 4194560 5000 0 0 0 x 75 0", status},
		"no memory": {stat, "Name:\ta\n"},
	} {
		if _, err := parseUsage([]byte(c.stat), c.status); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestUsageOf(t *testing.T) {
	u, err := UsageOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if u.RSS <= 0 || u.PeakRSS < u.RSS {
		t.Errorf("this process has %+v", u)
	}
}
