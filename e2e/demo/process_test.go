package demo

import (
	"path/filepath"
	"testing"
)

func TestFailure(t *testing.T) {
	for exit, want := range map[string]string{"3": "shell ended by itself: exit status 3", "0": "shell ended by itself"} {
		p, err := startProgram("shell", filepath.Join(t.TempDir(), "log"), "sh", "-c", "exit "+exit)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.failure().Error(); got != want {
			t.Errorf("exit code %s: %q", exit, got)
		}
	}
}
