// Package product builds Jobferry's own programs from the checkout, for tests that run them as
// processes:
//
//	program, err := product.Program("jobferry-worker")     // once in a process; removed when that ends
//	program, err := product.Build(ctx, dir, "jobferry-worker")
//
// They are built as a release is, by tools/build.
package product

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/rig/reap"
)

var (
	building sync.Mutex
	built    = map[string]string{} // files by program
)

// folder is what the programs are built into.
var folder = sync.OnceValues(func() (string, error) {
	reaper, err := reap.Shared()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "jobferry-programs-")
	if err != nil {
		return "", err
	}
	return dir, reaper.WatchDir(dir)
})

// binEnv names the folder that the programs have been built into beforehand, by tools/build. Then
// the time of no test goes into building them, which takes minutes on a machine without caches.
const binEnv = "JOBFERRY_BIN"

// Program returns the file of the program of cmd/<name>. It builds the program, unless that has
// been done, beforehand or by this process.
func Program(name string) (string, error) {
	if dir := os.Getenv(binEnv); dir != "" {
		return filepath.Join(dir, name), nil
	}
	building.Lock()
	defer building.Unlock()
	if file := built[name]; file != "" {
		return file, nil
	}
	dir, err := folder()
	if err != nil {
		return "", err
	}
	file, err := Build(context.Background(), dir, name)
	if err != nil {
		return "", err
	}
	built[name] = file
	return file, nil
}

// Build builds the program of cmd/<name> into a folder, or links there what has been built
// beforehand, and returns its file.
func Build(ctx context.Context, dir, name string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if bin := os.Getenv(binEnv); bin != "" {
		return filepath.Join(dir, name), link(bin, dir, name)
	}
	cmd := exec.CommandContext(ctx, checkout.Path("tools", "build"), dir, name)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, bytes.TrimSpace(out))
	}
	return filepath.Join(dir, name), nil
}

// link links a program from one folder into another, and what tools/build puts beside it.
func link(bin, dir, name string) error {
	bin, err := filepath.Abs(bin)
	if err == nil {
		err = os.MkdirAll(dir, 0o750)
	}
	files := []string{name}
	if name == "kubectl-jobferry" {
		files = append(files, "kubectl_complete-jobferry")
	}
	for _, file := range files {
		from, to := filepath.Join(bin, file), filepath.Join(dir, file)
		if err == nil {
			_, err = os.Stat(from)
		}
		if err == nil && from != to {
			err = errors.Join(os.RemoveAll(to), os.Symlink(from, to))
		}
	}
	if err != nil {
		return fmt.Errorf("link a program: %w", err)
	}
	return nil
}
