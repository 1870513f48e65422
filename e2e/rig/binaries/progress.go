package binaries

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// Phase is what happens to a program right now.
type Phase string

const (
	// Waiting means that another process holds the lock, most likely to build the same program.
	Waiting Phase = "waiting for another build of"
	// Fetching means that the program is downloaded from the release server of Kubernetes.
	Fetching Phase = "fetching"
	// Building means that the compiler runs.
	Building Phase = "building"
	// Fetched or Built is reported once for each program that was not in the cache at first.
	Fetched Phase = "fetched"
	Built   Phase = "built"
)

// Ended says that nothing more is to be done for the program.
func (p Phase) Ended() bool { return p == Fetched || p == Built }

// Progress is reported at each change of phase, and each second in between.
type Progress struct {
	Program string
	// Number and Of say how far the whole is: program 2 of 6.
	Number, Of int
	Phase      Phase
	// Elapsed is the time spent on this program.
	Elapsed time.Duration
	// Note says where the program comes from, or why it can't be fetched. Mostly empty.
	Note string
}

func (p Progress) String() string {
	s := fmt.Sprintf("%s %s (%d of %d, %s)", p.Phase, p.Program, p.Number, p.Of, p.Elapsed.Round(time.Second))
	if p.Note != "" {
		s += ": " + p.Note
	}
	return s
}

// Lines returns a reporter that writes plain lines: each change of phase, and a sign of life every
// 30 seconds.
func Lines(w io.Writer) func(Progress) {
	var last Progress
	return func(p Progress) {
		same := p.Program == last.Program && p.Phase == last.Phase
		if same && p.Elapsed-last.Elapsed < 30*time.Second {
			return
		}
		if p.Phase == Waiting && p.Elapsed < time.Second {
			return // the lock was free
		}
		last = p
		fmt.Fprintln(w, p)
	}
}

// ticker reports the progress of one program from the time it is started.
type ticker struct {
	mu       sync.Mutex
	progress Progress
	began    time.Time
	report   func(Progress)
	stop     context.CancelFunc
	stopped  chan struct{}
}

func startTicker(ctx context.Context, p Progress, report func(Progress)) *ticker {
	ctx, cancel := context.WithCancel(ctx)
	t := &ticker{progress: p, began: time.Now(), report: report, stop: cancel, stopped: make(chan struct{})}
	go t.run(ctx)
	return t
}

func (t *ticker) run(ctx context.Context) {
	defer close(t.stopped)
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-second.C:
			t.tell("", "")
		}
	}
}

// finish ends the reports. It returns when no more will come.
func (t *ticker) finish() {
	t.stop()
	<-t.stopped
}

// tell reports a phase and a note on it; without a phase, that the last one continues.
func (t *ticker) tell(phase Phase, note string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if phase != "" {
		t.progress.Phase, t.progress.Note = phase, note
	}
	t.progress.Elapsed = time.Since(t.began)
	t.report(t.progress)
}
