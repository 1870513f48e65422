package clock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// awaitStop waits until all threads of a process that was told to stop have done so, and returns
// where each stands.
func awaitStop(pid int, until time.Time) ([]uint64, error) {
	for {
		threads, running, err := programCounters(pid)
		if err != nil || !running {
			return threads, err
		}
		if time.Now().After(until) {
			return nil, fmt.Errorf("process %d doesn't stop", pid)
		}
		runtime.Gosched() // it's a matter of microseconds, and nothing tells when
	}
}

// programCounters are where the threads of a process stand; running: not all of them do.
func programCounters(pid int) (at []uint64, running bool, err error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil || len(tasks) == 0 {
		return nil, false, errors.Join(err, syscall.ESRCH)
	}
	for _, task := range tasks {
		// "running", or the system call, its arguments, the stack pointer and the program counter
		text, err := os.ReadFile(filepath.Join(task, "syscall"))
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // the thread has ended
		}
		if err != nil {
			return nil, false, err
		}
		fields := strings.Fields(string(text))
		if len(fields) < 3 {
			return nil, true, nil
		}
		var counter uint64
		if _, err := fmt.Sscanf(fields[len(fields)-1], "0x%x", &counter); err != nil {
			return nil, false, fmt.Errorf("%s: %q: %w", task, text, err)
		}
		at = append(at, counter)
	}
	return at, false, nil
}
