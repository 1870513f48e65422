package bench

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
	"time"

	"github.com/jobferry/jobferry/e2e/bench/report"
)

func TestScaleOptions(t *testing.T) {
	testOptions(t, DefaultScaleOptions(), map[string]func(*ScaleOptions){
		"one worker":    func(o *ScaleOptions) { o.Workers = 1 },
		"too few":       func(o *ScaleOptions) { o.Few = o.Workers - 1 },
		"more than all": func(o *ScaleOptions) { o.Few = o.Jobs + 1 },
		"finished":      func(o *ScaleOptions) { o.Finished = -1 },
		"most are lost": func(o *ScaleOptions) { o.Lost = o.Workers - 1 },
		"lost at once":  func(o *ScaleOptions) { o.LostAfter = 0 },
		"no handover":   func(o *ScaleOptions) { o.Handovers = 0 },
		"no singles":    func(o *ScaleOptions) { o.Singles = 0 },
		"slow":          func(o *ScaleOptions) { o.Slow = -1 },
		"no unit of Go": func(o *ScaleOptions) { o.MemoryLimit = "450Mi" },
		"no time":       func(o *ScaleOptions) { o.TimeLimit = 0 },
	})
}

// The limit is the manager's alone: this process, in which the workers are, collects garbage as
// ever.
func TestScaleLimitsTheManagersMemory(t *testing.T) {
	program := filepath.Join(t.TempDir(), "manager")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho limit=$GOMEMLIMIT\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	o := DefaultScaleOptions()
	o.MemoryLimit = "450MiB"
	s := &scale{options: o, product: installed{dir: t.TempDir(), program: program}}
	m, err := s.start(0)
	if err != nil {
		t.Fatal(err)
	}
	<-m.Ended()
	if said, err := os.ReadFile(m.LogFile()); err != nil || string(said) != "limit=450MiB\n" {
		t.Errorf("the manager says %q (%v)", said, err)
	}
	if limit := debug.SetMemoryLimit(-1); os.Getenv("GOMEMLIMIT") == "" && limit != math.MaxInt64 {
		t.Errorf("the limit of this process is %d", limit)
	}
}

// Six workers with 600 Jobs: a manager's start writes nothing, broken watches cost no memory, and a
// lost worker's Jobs move to workers that have room, without a storm of writes. `make bench-scale`
// is the long form, which judges times and sizes, too.
func TestScale(t *testing.T) {
	o := DefaultScaleOptions()
	o.Workers, o.Jobs, o.Few, o.Finished, o.Lost, o.Handovers, o.Singles = 6, 600, 60, 60, 1, 2, 20
	o.LostAfter, o.Slow, o.Progress = 10*time.Second, 3*time.Second, t.Logf
	o.Manager = builtManager(t)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	result, err := RunScale(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := report.ScaleMarkdown(t.Output(), result); err != nil {
		t.Fatal(err)
	}
	for _, f := range result.Figures {
		if f.Unit == report.Count && f.Missed() {
			t.Errorf("%s: %v, at most %v", f.Name, f.Value, f.Most)
		}
	}
}
