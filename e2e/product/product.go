// Package product builds Jobferry's own programs from the checkout, for tests that run them as
// processes:
//
//	program, err := product.Program("jobferry-worker")
//
// Each is built once in a process, and removed when that ends, however it does.
package product

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/jobferry/jobferry/e2e/rig/reap"
)

// Root is something in the checkout, by its path from there.
func Root(path ...string) string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(append([]string{filepath.Dir(file), "..", ".."}, path...)...)
}

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

// Program builds the program of cmd/<name>, unless it has been, and returns its file.
func Program(name string) (string, error) {
	building.Lock()
	defer building.Unlock()
	if file := built[name]; file != "" {
		return file, nil
	}
	dir, err := folder()
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, name)
	cmd := exec.Command("go", "build", "-o", file, "./cmd/"+name)
	cmd.Dir = Root()
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	built[name] = file
	return file, nil
}
