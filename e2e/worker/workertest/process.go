package workertest

import (
	"context"
	"os"
	"os/exec"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
	"github.com/jobferry/jobferry/e2e/rig/process"
)

// Start runs jobferry-worker on a cluster, without servers of its own and without leader election
// unless args say otherwise. It reads the objects of its caches without copying them: if it changes
// one, client-go ends it.
func Start(program, kubeconfig, logFile string, args ...string) (*process.Process, error) {
	cmd := Command(program, kubeconfig, args...)
	cmd.Env = append(os.Environ(), "KUBE_CACHE_MUTATION_DETECTOR=true")
	return process.Start(cmd, logFile)
}

// Command is what Start runs, at its full speed.
func Command(program, kubeconfig string, args ...string) *exec.Cmd {
	return exec.Command(program, append([]string{"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--metrics-bind-address=0",
		"--health-probe-bind-address=0", "--log-format=text"}, args...)...)
}

// BuiltIn is kube-controller-manager with nothing but its Job controller.
func BuiltIn(ctx context.Context, cluster *rig.Cluster, args ...string) (*exec.Cmd, error) {
	programs, err := binaries.Ensure(ctx, cluster.Release(), nil)
	if err != nil {
		return nil, err
	}
	args = append([]string{"--kubeconfig=" + cluster.Kubeconfig(), "--controllers=job-controller", "--leader-elect=false", "--secure-port=0"}, args...)
	return exec.Command(programs[binaries.ControllerManager], args...), nil
}
