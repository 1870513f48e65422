package rig

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jobferry/jobferry/e2e/rig/binaries"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

// Backup stops the control plane, copies etcd's data, and starts the control plane again.
// Meanwhile, no other method of the cluster is to be called.
func (c *Cluster) Backup(ctx context.Context, to string) error {
	return c.whileOff(ctx, func(data string) error { return os.CopyFS(to, os.DirFS(data)) })
}

// Restore puts etcd's data back to a backup, likewise. Resource versions continue from there, as
// they do unless an admin has etcdutl bump them.
func (c *Cluster) Restore(ctx context.Context, from string) error {
	defer wake.Signal(c.restored)
	return c.whileOff(ctx, func(data string) error {
		if err := os.RemoveAll(data); err != nil {
			return err
		}
		return os.CopyFS(data, os.DirFS(from))
	})
}

// CopyData copies etcd's data while only etcd doesn't run, which the caller sees to.
func (c *Cluster) CopyData(to string) error {
	return os.CopyFS(to, os.DirFS(c.dataFolder()))
}

func (c *Cluster) dataFolder() string { return filepath.Join(c.dir, "etcd") }

// whileOff has something done with etcd's data while nothing of the control plane runs.
func (c *Cluster) whileOff(ctx context.Context, do func(data string) error) error {
	for i := len(c.components) - 1; i >= 0; i-- {
		if err := c.components[i].Kill(); err != nil {
			return fmt.Errorf("stop cluster %s: %w", c.Name(), err)
		}
	}
	if err := do(c.dataFolder()); err != nil {
		return fmt.Errorf("the data of cluster %s: %w", c.Name(), err)
	}
	for _, component := range c.components {
		if err := component.Start(); err != nil {
			return fmt.Errorf("start cluster %s: %w", c.Name(), err)
		}
		if component.Name != binaries.APIServer {
			continue
		}
		if err := c.Ready(ctx); err != nil {
			return err
		}
	}
	return c.Ready(ctx)
}
