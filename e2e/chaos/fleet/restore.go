package fleet

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

// BackUp copies a worker's etcd, and returns how to put it back. Its admin restarts everything
// there that watches the API server.
func (f *Fleet) BackUp(w *Worker) (restore func(context.Context) error, err error) {
	dir, err := os.MkdirTemp(f.options.Dir, "backup-")
	if err != nil {
		return nil, err
	}
	backup := filepath.Join(dir, "etcd")
	etcd := w.Component(binaries.Etcd)
	if err := errors.Join(f.Kill(etcd), w.CopyData(backup), f.Revive(etcd)); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		f.keeper.hold(w.Components(), 1)
		defer f.keeper.hold(w.Components(), -1)
		return w.Restore(ctx, backup)
	}, nil
}
