// Package charttest is package deploy as a test calls it: what fails ends the test, and what runs
// ends with it.
package charttest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jobferry/jobferry/e2e/chart/deploy"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/process"
)

// Namespace is where the charts are installed.
const Namespace = deploy.Namespace

// TryHelm runs Helm, and returns its standard output and, as the error, its standard error.
func TryHelm(t testing.TB, args ...string) (string, error) {
	t.Helper()
	return deploy.Helm(context.WithoutCancel(t.Context()), t.TempDir(), args...) // cleanups come after its end
}

// Helm runs Helm, which must succeed.
func Helm(t testing.TB, args ...string) string {
	t.Helper()
	out, err := TryHelm(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// HelmIn runs Helm on a cluster.
func HelmIn(t testing.TB, cluster *rig.Cluster, args ...string) string {
	t.Helper()
	return Helm(t, append(args, deploy.On(cluster)...)...)
}

// Process is a program with a log.
type Process struct {
	*process.Process
	command []string
	log     string
}

// Again starts a program that has ended, with the same arguments.
func (p Process) Again(t testing.TB) Process {
	t.Helper()
	return launch(t, p.command)
}

// Run starts a program as the Deployment of its name would: its arguments, its ServiceAccount. Only
// the addresses that it listens on are others; flags that come later win. It runs until the test
// ends.
func Run(t testing.TB, cluster *rig.Cluster, file string, listen ...string) Process {
	t.Helper()
	command, err := deploy.Command(t.Context(), cluster, file, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return launch(t, append(command, listen...))
}

func launch(t testing.TB, command []string) Process {
	t.Helper()
	p := Process{command: command, log: filepath.Join(t.TempDir(), "log")}
	var err error
	p.Process, err = process.Start(exec.Command(command[0], command[1:]...), p.log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			text, err := os.ReadFile(p.log)
			t.Logf("log of %s (error %v):\n%s", command[0], err, text)
		}
	})
	return p
}

// Address of a server of a program on loopback, in place of the one in a Pod.
type Address string

// FreeAddress is one that nobody listens on.
func FreeAddress(t testing.TB) Address {
	t.Helper()
	a, err := rig.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return Address(a)
}
