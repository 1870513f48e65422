package rig

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

// Kubectl runs kubectl as the cluster's administrator, with input as its standard input, and
// returns its standard output. The error of a failed run has its standard error.
func (c *Cluster) Kubectl(ctx context.Context, input string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, c.KubectlProgram(), append([]string{"--kubeconfig=" + c.Kubeconfig()}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+c.dir) // its discovery cache goes away with the cluster
	cmd.Stdin = strings.NewReader(input)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// KubectlProgram is the file name of the kubectl that was built for the rig.
func (c *Cluster) KubectlProgram() string { return c.programs[binaries.Kubectl] }
