package rig_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jobferry/jobferry/e2e/rig"
)

// However the process that started a cluster ends, nothing of the cluster is left.
func TestNothingIsLeftBehind(t *testing.T) {
	for _, end := range []struct {
		name   string
		signal syscall.Signal
	}{
		{"killed", syscall.SIGKILL},
		{"interrupted", syscall.SIGINT},
		{"quit, as go test does after its time limit", syscall.SIGQUIT},
	} {
		t.Run(end.name, func(t *testing.T) {
			t.Parallel()
			process, pids, kubeconfig := startVictim(t)
			if err := process.Signal(end.signal); err != nil {
				t.Fatal(err)
			}
			deadline := time.After(time.Minute)
			for len(alive(pids)) > 0 || exists(filepath.Dir(kubeconfig)) {
				select {
				case <-deadline:
					t.Fatalf("still there: processes %v, folder %t", alive(pids), exists(filepath.Dir(kubeconfig)))
				case <-time.After(50 * time.Millisecond): // no child of ours: nothing to wait on
				}
			}
		})
	}
}

func TestStopRemovesEverything(t *testing.T) {
	c, err := rig.Start(t.Context(), rig.Options{Name: "short"})
	if err != nil {
		t.Fatal(err)
	}
	var pids []string
	for _, component := range c.Components() {
		pids = append(pids, pidString(component.PID()))
	}
	for range 2 { // the second time nothing happens
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	}
	if left := alive(pids); len(left) > 0 || exists(filepath.Dir(c.Kubeconfig())) {
		t.Errorf("still there: processes %v, folder %t", left, exists(filepath.Dir(c.Kubeconfig())))
	}
}

// startVictim starts a process that starts a cluster, and returns when that is ready.
func startVictim(t *testing.T) (process *os.Process, pids []string, kubeconfig string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victim+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), " ")
		switch key {
		case "pid":
			pids = append(pids, value)
		case "file":
			kubeconfig = value
		case "ready":
			return cmd.Process, pids, kubeconfig
		default:
			t.Log(lines.Text())
		}
	}
	t.Fatal("the victim ended before its cluster was ready")
	return nil, nil, ""
}

// Logs can be kept, for a look at them after a failure; everything else still goes.
func TestLogsAreKeptOnDemand(t *testing.T) {
	kept := t.TempDir()
	t.Setenv(rig.LogsVariable, kept)
	c, err := rig.Start(t.Context(), rig.Options{Name: "logged"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, component := range c.Components() {
		if !strings.HasPrefix(component.LogFile(), kept) || !exists(component.LogFile()) {
			t.Errorf("no log of %s in %s", component.Name, kept)
		}
	}
}
