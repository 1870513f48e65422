package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"

	"github.com/jobferry/jobferry/e2e/demo/scenario"
	"github.com/jobferry/jobferry/e2e/demo/state"
)

// describe is the command that shows the shards of the divided Job.
const describe = "kubectl jobferry describe -n " + scenario.Namespace + " " + scenario.Divided

// aggregation has the hub's API server ask the manager for Pods, logs and mirrors. The manager runs
// outside of the cluster, so its Service has an external name.
const aggregation = `
apiVersion: v1
kind: Service
metadata: {name: jobferry-subresources, namespace: %s}
spec: {type: ExternalName, externalName: %s}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1alpha1.subresources.jobferry.dev}
spec:
  group: subresources.jobferry.dev
  version: v1alpha1
  groupPriorityMinimum: 1000
  versionPriority: 15
  service: {name: jobferry-subresources, namespace: %[1]s, port: %[3]d}
`

// registerAPI registers the manager's aggregated API, which the plugin uses, and returns the
// address for it.
func (d *demo) registerAPI(ctx context.Context) (address string, err error) {
	const host = "127.0.0.1"
	port, err := d.hub.ReservePort()
	if err != nil {
		return "", err
	}
	_, err = d.hub.Kubectl(ctx, fmt.Sprintf(aggregation, managerNamespace, host, port), "create", "-f", "-")
	return net.JoinHostPort(host, strconv.Itoa(port)), err
}

// describeDivided has the plugin describe the divided Job while several workers run it.
func (d *demo) describeDivided(ctx context.Context) error {
	isDivided := func(s *state.State) bool {
		j := s.Jobs[s.Index(scenario.Divided)]
		return strings.Contains(j.Cluster, ",") && j.Succeeded > 0
	}
	if err := d.board.until(ctx, func(s *state.State) bool { return isDivided(s) || s.Settled() }); err != nil {
		return err
	}
	if s, _ := d.board.read(); !isDivided(&s) {
		return fmt.Errorf("expected several workers to run Job %s at once, but only one did", scenario.Divided)
	}
	cmd := exec.CommandContext(ctx, d.programs[pluginProgram], "--kubeconfig", d.hub.Kubeconfig(), "describe",
		"-n", scenario.Namespace, scenario.Divided)
	text, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = fmt.Errorf("%s: %w: %s", describe, err, failed.Stderr)
	}
	d.description = string(text)
	return err
}
