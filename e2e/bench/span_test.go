package bench

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jobferry/jobferry/e2e/bench/report"
)

func TestSpanOptions(t *testing.T) {
	testOptions(t, DefaultSpanOptions(), map[string]func(*SpanOptions){
		"no indexes":         func(o *SpanOptions) { o.Indexes = 0 },
		"no parallelism":     func(o *SpanOptions) { o.Parallelism = 0 },
		"none is left":       func(o *SpanOptions) { o.Workers = 2 },
		"drained at the end": func(o *SpanOptions) { o.Drain = 1 },
		"lost before":        func(o *SpanOptions) { o.Lose = -0.1 },
		"Pods of no time":    func(o *SpanOptions) { o.RunFor = 0 },
		"lost at once":       func(o *SpanOptions) { o.LostAfter = time.Second },
		"room":               func(o *SpanOptions) { o.Room = -1 },
		"small":              func(o *SpanOptions) { o.Small = -1 },
	})
}

// One Job of 2,000 indexes over three workers, of which one is drained and one is lost: each index
// completes exactly once, and the manager needs little memory. `make bench-span` is the long form,
// beside one cluster, which judges time and requests, too.
func TestSpan(t *testing.T) {
	o := DefaultSpanOptions()
	o.Indexes, o.Workers, o.Parallelism, o.RunFor = 2000, 3, 200, 3*time.Second
	o.LostAfter, o.Whole = 15*time.Second, false
	o.Programs, o.Progress = os.Getenv("JOBFERRY_BIN"), t.Logf
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	result, err := RunSpan(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := report.SpanMarkdown(t.Output(), result); err != nil {
		t.Fatal(err)
	}
	for _, missed := range report.MissedOf(result) {
		if strings.HasPrefix(missed, "requests") {
			continue // the status is written while time passes
		}
		t.Error(missed)
	}
	if result.Spanned.Moved == 0 {
		t.Error("no index changed its worker: the test shows nothing")
	}
}
