package fleet

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

// backupAge is how old a backup of the hub is when a copy is started from it: "It isn't guaranteed
// for a backup that is less than 20 s old when the copy's manager starts", says
// docs/how-to/operate.md.
const backupAge = 25 * time.Second

// CopyHub starts a copy of the hub from a backup of its etcd, with a manager of its own, and
// returns how to stop it.
func (f *Fleet) CopyHub(ctx context.Context) (stop func() error, err error) {
	dir, err := os.MkdirTemp(f.options.Dir, "copy-")
	if err != nil {
		return nil, err
	}
	backup := filepath.Join(dir, "etcd")
	etcd := f.Hub.Component(binaries.Etcd)
	if err := errors.Join(f.Kill(etcd), f.Hub.CopyData(backup), f.Revive(etcd)); err != nil {
		return nil, err
	}
	old := time.NewTimer(backupAge)
	defer old.Stop()
	hub, err := rig.Start(ctx, rig.Options{Name: "copy"})
	if err != nil {
		return nil, err
	}
	stop = hub.Stop
	if err := hub.Restore(ctx, backup); err != nil {
		return stop, err
	}
	manager, err := f.newManager(hub, filepath.Base(dir))
	if err != nil {
		return stop, err
	}
	stop = func() error {
		manager.Link.Close()
		return hub.Stop()
	}
	select {
	case <-old.C:
	case <-ctx.Done():
		return stop, ctx.Err()
	}
	return stop, manager.Start()
}
