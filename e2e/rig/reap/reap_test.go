package reap

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestListenKeepsWhatIsNotForgotten(t *testing.T) {
	pids, dirs := listen(strings.NewReader(`watch-pid 100
watch-pid 200
watch-dir /tmp/a b
watch-dir /tmp/c
forget-pid 100
forget-dir /tmp/c
`))
	if !slices.Equal(pids, []int{200}) || !slices.Equal(dirs, []string{"/tmp/a b"}) {
		t.Errorf("left are %v and %v", pids, dirs)
	}
}

func TestCleanKillsAndRemoves(t *testing.T) {
	sleeper := exec.Command("sleep", "1000")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.MkdirAll(filepath.Join(dir, "deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	clean([]int{sleeper.Process.Pid, 0}, []string{dir}) // 0 would be our own group
	if err := sleeper.Wait(); err == nil || sleeper.ProcessState.Exited() {
		t.Errorf("the process ended with %v, want killed", err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder: %v", err)
	}
}

func TestNamesWithLineBreaksAreRefused(t *testing.T) {
	r := &Reaper{pipe: &strings.Builder{}}
	if err := r.WatchDir("/tmp/a\nwatch-pid 1"); err == nil {
		t.Error("taken")
	}
}
