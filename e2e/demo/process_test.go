package demo

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestProcess(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	p, err := startProcess("sh", log, "sh", "-c", "echo 1; echo 2; echo 3; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	<-p.ended
	if p.err == nil || p.cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("ended by %v", p.err)
	}
	if got := p.logTail(2); got != "  2\n  3" {
		t.Errorf("log %q", got)
	}
	if got := p.failure().Error(); got != "sh ended by itself: exit status 3" {
		t.Errorf("failure %q", got)
	}
	if err := p.stop(); err != nil {
		t.Errorf("stop of what has ended: %v", err)
	}
}

func TestProcessIsAskedToEnd(t *testing.T) {
	p, err := startProcess("sleep", filepath.Join(t.TempDir(), "log"), "sleep", "1000")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	if p.err == nil || !strings.Contains(p.err.Error(), "terminated") {
		t.Errorf("ended by %v", p.err)
	}
}

func TestProcessThatCannotStart(t *testing.T) {
	if _, err := startProcess("none", filepath.Join(t.TempDir(), "log"), "/does/not/exist"); err == nil {
		t.Error("started")
	}
}
