package report

import (
	"strings"
	"testing"
	"time"
)

func TestWorse(t *testing.T) {
	round := func(isBase bool, requests int, cpu time.Duration) Round {
		return Round{IsBase: isBase, Used: Used{Requests: requests, Events: 200, CPU: cpu}}
	}
	for name, c := range map[string]struct {
		rounds []Round
		want   string
	}{
		"no base":  {[]Round{round(false, 600, time.Second)}, ""},
		"the same": {[]Round{round(true, 600, time.Second), round(false, 600, time.Second)}, ""},
		"better":   {[]Round{round(true, 700, 2*time.Second), round(false, 600, time.Second)}, ""},
		"a request more for each Job": {[]Round{round(true, 600, time.Second), round(false, 700, time.Second)},
			"requests per Job: 7 , with the base 6 ; the noise is 2%"},
		"within the noise of CPU": {[]Round{round(true, 600, time.Second), round(false, 600, 1100*time.Millisecond)}, ""},
		"more CPU": {[]Round{round(true, 600, time.Second), round(false, 600, 1200*time.Millisecond)},
			"CPU of the manager: 1.20 s, with the base 1.00 s; the noise is 15%"},
		"more CPU, where rounds differ by more": {[]Round{
			round(true, 600, time.Second), round(true, 600, 1300*time.Millisecond), round(true, 600, time.Second),
			round(false, 600, 1200*time.Millisecond), round(false, 600, 1200*time.Millisecond), round(false, 600, 1200*time.Millisecond),
		}, ""},
	} {
		r := &Result{Jobs: 100, Rounds: c.rounds}
		if got := strings.Join(Worse(r), "; "); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
