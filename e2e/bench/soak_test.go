package bench

import (
	"context"
	"testing"
	"time"

	"github.com/jobferry/jobferry/e2e/bench/report"
)

func TestSoakOptions(t *testing.T) {
	testOptions(t, DefaultSoakOptions(), map[string]func(*SoakOptions){
		"duration":   func(o *SoakOptions) { o.Duration = 0 },
		"leaders":    func(o *SoakOptions) { o.Leaders = 0 },
		"rotations":  func(o *SoakOptions) { o.Rotations = 0 },
		"samples":    func(o *SoakOptions) { o.Samples = 0 },
		"ttl":        func(o *SoakOptions) { o.TTL = 0 },
		"rate":       func(o *SoakOptions) { o.Rate = -1 },
		"at-a-time":  func(o *SoakOptions) { o.AtATime = 0 },
		"trial":      func(o *SoakOptions) { o.Trial = 0 },
		"no workers": func(o *SoakOptions) { o.Workers = 0 },
		"settle":     func(o *SoakOptions) { o.Settle = -1 },
	})
}

// Jobs come for 40 seconds, while two leaders end and credentials change: none is lost, each has
// its event, and nothing is left. `make soak` is the long form, which judges times and memory, too.
func TestSoak(t *testing.T) {
	o := DefaultSoakOptions()
	o.Duration, o.Rate, o.Leaders, o.Rotations = 40*time.Second, 4, 15*time.Second, 6*time.Second
	o.TTL, o.Samples, o.Settle, o.Progress = 3*time.Second, time.Second, 0, t.Logf
	o.Manager = builtManager(t)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	result, err := RunSoak(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := report.SoakMarkdown(t.Output(), result); err != nil {
		t.Fatal(err)
	}
	for _, f := range result.Figures {
		if f.None && f.Missed() {
			t.Errorf("%s: %v", f.Name, f.Value)
		}
	}
}
