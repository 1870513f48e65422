package rig

import (
	"context"
	"fmt"
	"slices"

	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

// Upgrade replaces the control plane by that of another release, in the order that Kubernetes asks
// for: the API server first. etcd with its data stays, as do nodes, ports and certificates. It
// returns when the new API server is ready; meanwhile, no other method of the cluster is to be
// called.
func (c *Cluster) Upgrade(ctx context.Context, release binaries.Release) error {
	programs, err := binaries.Ensure(ctx, release, c.options.report())
	if err != nil {
		return err
	}
	c.programs, c.options.Release = programs, release
	for _, name := range []string{binaries.APIServer, binaries.ControllerManager, binaries.Scheduler} {
		i := slices.IndexFunc(c.components, func(component *Component) bool { return component.Name == name })
		if i < 0 {
			continue // a hub has no scheduler
		}
		if err := c.components[i].replace(programs[name]); err != nil {
			return fmt.Errorf("upgrade cluster %s to %s: %w", c.Name(), release, err)
		}
		if err := c.Ready(ctx); err != nil {
			return fmt.Errorf("upgrade cluster %s to %s: %w", c.Name(), release, err)
		}
	}
	return nil
}

// replace restarts the process as another program.
func (c *Component) replace(program string) error {
	if err := c.Kill(); err != nil {
		return err
	}
	c.mu.Lock()
	c.program = program
	c.mu.Unlock()
	return c.Start()
}
