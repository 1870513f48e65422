package chart_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jobferry/jobferry/e2e/product"
	"github.com/jobferry/jobferry/e2e/worker/workertest"
)

// program builds one of Jobferry's programs, once, and returns its file name.
func program(t *testing.T, name string) string {
	t.Helper()
	file, err := product.Program(name)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// process is a program with a log.
type process struct {
	*workertest.Process
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
	p.Process, err = workertest.Launch(exec.Command(program(t, name), append(args, "--kubeconfig="+file)...), p.log)
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
