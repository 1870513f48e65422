// Package charttest runs Helm on clusters of the rig, and the programs as the charts' Deployments
// would: nodes of the rig run no images, so the test starts the processes itself.
package charttest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
	"github.com/jobferry/jobferry/e2e/rig/process"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// Namespace is where the charts are installed.
const Namespace = "jobferry-system"

// helmTimeout is for one run of Helm.
const helmTimeout = 5 * time.Minute

var helmProgram = sync.OnceValues(func() (string, error) {
	return binaries.Tool(context.Background(), binaries.Helm, binaries.Lines(os.Stderr))
})

// TryHelm runs Helm, and returns its standard output and, as the error, its standard error.
func TryHelm(t testing.TB, args ...string) (string, error) {
	t.Helper()
	program, err := helmProgram()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	// cleanups come after its end
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), helmTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = []string{"HOME=" + home, "HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("helm %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), nil
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
	return Helm(t, append(args, "--kubeconfig", cluster.Kubeconfig(), "--namespace", Namespace)...)
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
	name := filepath.Base(file)
	kubeconfig, err := cluster.ServiceAccountKubeconfig(t.Context(), Namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	deployment, err := cluster.Client().AppsV1().Deployments(Namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(config, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	command := append([]string{file, "--kubeconfig=" + config}, deployment.Spec.Template.Spec.Containers[0].Args...)
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

// Aggregate has the hub's API server find the manager's API on this machine. Nothing routes a
// Service's own address here; one with an external name is what the API server connects to itself.
func Aggregate(f *rigtest.Fixture, hub *rig.Cluster, api Address) error {
	_, port, err := net.SplitHostPort(string(api))
	if err != nil {
		return err
	}
	f.Kubectl(hub, "", "patch", "service", "jobferry-subresources", "-n", Namespace, "--type=merge", "-p",
		`{"spec":{"type":"ExternalName","externalName":"127.0.0.1","clusterIP":null,"clusterIPs":null}}`)
	f.Kubectl(hub, "", "patch", "apiservice", "v1alpha1.subresources.jobferry.dev", "--type=merge", "-p",
		`{"spec":{"service":{"port":`+port+`}}}`)
	f.Kubectl(hub, "", "wait", "--for=condition=Available", "apiservice/v1alpha1.subresources.jobferry.dev", "--timeout=90s")
	return nil
}
