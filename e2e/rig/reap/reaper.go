package reap

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Reaper is the program's end of the pipe.
type Reaper struct {
	mu   sync.Mutex
	pipe io.Writer
	cmd  *exec.Cmd
}

// Shared is the reaper of this process; the first call starts it.
var Shared = sync.OnceValues(start)

func start() (*Reaper, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), variable+"=1")
	// No output of ours: "go test" waits until every process that holds its output has ended.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the reaper: %w", err)
	}
	return &Reaper{pipe: pipe, cmd: cmd}, nil
}

// Watch has the process killed when this program ends.
func (r *Reaper) Watch(pid int) error { return r.tell(watchPID, strconv.Itoa(pid)) }

// Forget is called when the process has ended and was waited for.
func (r *Reaper) Forget(pid int) error { return r.tell(forgetPID, strconv.Itoa(pid)) }

// WatchDir has the folder removed when this program ends, after its processes.
func (r *Reaper) WatchDir(dir string) error { return r.tell(watchDir, dir) }

// ForgetDir is called when the folder has been removed.
func (r *Reaper) ForgetDir(dir string) error { return r.tell(forgetDir, dir) }

func (r *Reaper) tell(verb, what string) error {
	if strings.Contains(what, "\n") {
		return fmt.Errorf("reaper: %q has a line break", what)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := fmt.Fprintf(r.pipe, "%s %s\n", verb, what); err != nil {
		return fmt.Errorf("the reaper is gone: %w", err)
	}
	return nil
}
