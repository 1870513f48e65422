package process

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestProcess(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	p, err := Start(exec.Command("sh", "-c", "echo 1; echo 2; echo 3; exit 3"), log)
	if err != nil {
		t.Fatal(err)
	}
	<-p.Ended()
	if p.err == nil || p.State().ExitCode() != 3 || p.Runs() {
		t.Errorf("ended by %v", p.err)
	}
	if got := p.LogTail(2); got != "  2\n  3" {
		t.Errorf("log %q", got)
	}
	if err := p.End(time.Minute); err != nil {
		t.Errorf("stop of what has ended: %v", err)
	}
}

func TestProcessIsAskedToEnd(t *testing.T) {
	p, err := Start(exec.Command("sleep", "1000"), filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.End(time.Minute); err != nil {
		t.Error(err)
	}
	if p.err == nil || !strings.Contains(p.err.Error(), "terminated") {
		t.Errorf("ended by %v", p.err)
	}
}

func TestProcessThatCannotStart(t *testing.T) {
	if _, err := Start(exec.Command("/does/not/exist"), filepath.Join(t.TempDir(), "log")); err == nil {
		t.Error("started")
	}
}

func TestProcessThatDoesNotEnd(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	p, err := Start(exec.Command("sh", "-c", "trap '' TERM; echo ready; exec sleep 1000"), log)
	if err != nil {
		t.Fatal(err)
	}
	for p.LogTail(1) != "  ready" && p.Runs() {
		runtime.Gosched()
	}
	if err := p.End(time.Millisecond); err == nil || !strings.Contains(err.Error(), "sh did not end within 1ms") || p.Runs() {
		t.Errorf("error %v, runs %v", err, p.Runs())
	}
}
