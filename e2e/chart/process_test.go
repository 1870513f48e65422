package chart_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/jobferry/jobferry/e2e/rig/reap"
	"github.com/jobferry/jobferry/e2e/worker/play"
)

// built are the programs that this test binary has built, by name.
var built struct {
	sync.Mutex
	folder   string
	programs map[string]string
}

// program builds one of Jobferry's programs, once, and returns its file name.
func program(t *testing.T, name string) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if file := built.programs[name]; file != "" {
		return file
	}
	file, err := build(name)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func build(name string) (string, error) {
	if built.folder == "" {
		reaper, err := reap.Shared()
		if err != nil {
			return "", err
		}
		if built.folder, err = os.MkdirTemp("", "jobferry-chart-"); err != nil {
			return "", err
		}
		if err := reaper.WatchDir(built.folder); err != nil {
			return "", err
		}
		built.programs = map[string]string{}
	}
	file := filepath.Join(built.folder, name)
	cmd := exec.Command("go", "build", "-o", file, "./cmd/"+name)
	cmd.Dir = root()
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	built.programs[name] = file
	return file, nil
}

// process is a program with a log.
type process struct {
	*play.Process
	log string
}

// start runs a program with a kubeconfig until the test ends.
func start(t *testing.T, name string, kubeconfig []byte, args ...string) process {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	p := process{log: filepath.Join(dir, "log")}
	var err error
	p.Process, err = play.Launch(exec.Command(program(t, name), append(args, "--kubeconfig="+file)...), p.log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("log of %s:\n%s", name, p.said(t))
		}
	})
	return p
}

// said is the log so far.
func (p process) said(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(p.log)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
