package link

import (
	"net/http"
	"testing"
	"time"
)

func TestWorkerClock(t *testing.T) {
	var c workerClock
	now := time.Unix(0, 0)
	answer := func(ahead time.Duration) {
		now = now.Add(7300 * time.Millisecond)
		there := now.Add(10 * time.Millisecond).Add(-ahead)
		resp := &http.Response{Header: http.Header{"Date": {there.UTC().Format(http.TimeFormat)}}}
		c.see(resp, now, now.Add(20*time.Millisecond))
	}
	for _, ahead := range []time.Duration{0, time.Hour, -15 * time.Minute, 400 * time.Millisecond} {
		answer(ahead)
		if d := (c.ahead() - ahead).Abs(); d > 600*time.Millisecond {
			t.Errorf("after one answer it's %v off", d)
		}
		for range 20 {
			answer(ahead)
		}
		if d := (c.ahead() - ahead).Abs(); d > 100*time.Millisecond {
			t.Errorf("after some answers it's %v off", d)
		}
	}
	was := c.ahead()
	c.see(&http.Response{Header: http.Header{"Date": {"soon"}}}, now, now)
	c.see(&http.Response{}, now, now)
	if c.ahead() != was {
		t.Error("an answer without a date has changed it")
	}
}
