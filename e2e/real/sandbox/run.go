package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// prefix is what the names of all cgroups begin with that a sandbox makes.
const prefix = "jobferry-real-"

// Run runs this program with other arguments as the first process of a sandbox, on our standard
// streams.
func Run(ctx context.Context, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID,
		Pdeathsig:  syscall.SIGKILL,
	}
	// The sandbox's own handler ends it in order; if that takes too long, its end is everything's
	// end.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	return cmd.Run()
}

// Isolated runs this program with other arguments in a mount namespace of its own.
func Isolated(ctx context.Context, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	return cmd.Run()
}

// Private keeps the mounts of this process from all others. It's the first thing to do in a mount
// namespace.
func Private() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	return nil
}

// Cgroup makes a cgroup in each hierarchy, and returns its path below them.
func Cgroup(name string) (string, error) {
	hierarchies, err := os.ReadDir(Cgroups)
	if err != nil {
		return "", err
	}
	for _, h := range hierarchies {
		if h.Type()&fs.ModeSymlink != 0 {
			continue
		}
		dir := filepath.Join(Cgroups, h.Name(), prefix+name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", err
		}
	}
	// empty in a new cgroup, which then takes no process
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		all, err := os.ReadFile(filepath.Join(Cgroups, "cpuset", file))
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(Cgroups, "cpuset", prefix+name, file), all, 0o644); err != nil {
			return "", err
		}
	}
	return "/" + prefix + name, nil
}

// cleaning is how long cgroups may stay busy after their processes were killed.
const cleaning = 10 * time.Second

// Clean removes the cgroups that sandboxes made.
func Clean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cleaning)
	defer cancel()
	retry := time.NewTicker(50 * time.Millisecond)
	defer retry.Stop()
	for {
		err := removeCgroups()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-retry.C:
		}
	}
}

func removeCgroups() error {
	tops, err := filepath.Glob(filepath.Join(Cgroups, "*", prefix+"*"))
	if err != nil {
		return err
	}
	var errs []error
	for _, top := range tops {
		var dirs []string
		err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				dirs = append(dirs, path)
			}
			return nil // what is gone already is no error
		})
		errs = append(errs, err)
		slices.Reverse(dirs) // children first
		for _, dir := range dirs {
			if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}
