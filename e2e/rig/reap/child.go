package reap

import (
	"bufio"
	"errors"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// variable tells the executable that it was started as the reaper.
const variable = "JOBFERRY_RIG_REAPER"

const (
	watchPID  = "watch-pid"
	forgetPID = "forget-pid"
	watchDir  = "watch-dir"
	forgetDir = "forget-dir"
)

// deathWait is how long killed processes may take to be gone before their folders are removed all
// the same.
const deathWait = 10 * time.Second

func init() {
	if os.Getenv(variable) == "" {
		return
	}
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	pids, dirs := listen(os.Stdin)
	clean(pids, dirs)
	os.Exit(0)
}

// listen reads until the program's end of the pipe closes, and returns what is left to clean up.
func listen(pipe io.Reader) (pids []int, dirs []string) {
	pidSet, dirSet := map[int]bool{}, map[string]bool{}
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		verb, what, _ := strings.Cut(lines.Text(), " ")
		pid, _ := strconv.Atoi(what)
		switch verb {
		case watchPID:
			pidSet[pid] = true
		case forgetPID:
			delete(pidSet, pid)
		case watchDir:
			dirSet[what] = true
		case forgetDir:
			delete(dirSet, what)
		}
	}
	return slices.Collect(maps.Keys(pidSet)), slices.Collect(maps.Keys(dirSet))
}

func clean(pids []int, dirs []string) {
	for _, pid := range pids {
		if pid > 1 { // 0 and -1 would be whole groups
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	awaitEnd(pids)
	for _, dir := range dirs {
		_ = os.RemoveAll(dir) // nobody is left to be told
	}
}

// awaitEnd looks again and again, as they are no children of ours that could be waited for.
func awaitEnd(pids []int) {
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	limit := time.After(deathWait)
	for slices.ContainsFunc(pids, alive) {
		select {
		case <-look.C:
		case <-limit:
			return
		}
	}
}

// alive says whether a process still runs; one that ended but was not waited for doesn't.
func alive(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	// pid (name) state ...: the name may hold blanks and brackets
	_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " ")
	return !strings.HasPrefix(rest, "Z")
}
