package fleet

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

// BackUp copies a cluster's etcd, and returns how to put it back. Its admin restarts everything
// there that watches the API server.
func (f *Fleet) BackUp(c *rig.Cluster) (restore func(context.Context) error, err error) {
	dir, err := os.MkdirTemp(f.options.Dir, "backup-")
	if err != nil {
		return nil, err
	}
	backup := filepath.Join(dir, "etcd")
	etcd := c.Component(binaries.Etcd)
	if err := errors.Join(f.Kill(etcd), c.CopyData(backup), f.Revive(etcd)); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		f.keeper.hold(c.Components(), 1)
		defer f.keeper.hold(c.Components(), -1)
		return c.Restore(ctx, backup)
	}, nil
}

// BackUpHub does the same with the hub. Its admins have told its users to write nothing until it's
// put back (Writing).
func (f *Fleet) BackUpHub() (restore func(context.Context) error, err error) {
	f.writing.Lock()
	back, err := f.BackUp(f.Hub)
	if err != nil {
		f.writing.Unlock()
		return nil, err
	}
	return func(ctx context.Context) error {
		defer f.writing.Unlock()
		return back(ctx)
	}, nil
}

// Writing does what a user writes to the hub, once its admins let users do so.
func (f *Fleet) Writing(do func()) {
	f.writing.RLock()
	defer f.writing.RUnlock()
	do()
}
