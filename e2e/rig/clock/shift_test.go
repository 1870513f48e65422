//go:build linux && amd64

package clock

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// variable makes the test program one that tells the time for each line of input.
const variable = "JOBFERRY_CLOCK_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(variable) == "" {
		os.Exit(m.Run())
	}
	began := time.Now()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(time.Now().Unix(), time.Since(began).Milliseconds())
	}
}

// process tells its wall clock, and the time since its start.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Writer
	out io.Reader
}

func start(t *testing.T) *process {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), variable+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &process{t: t, cmd: cmd, in: in, out: out}
}

func (p *process) ask() (wall time.Time, since time.Duration) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, "\n"); err != nil {
		p.t.Fatal(err)
	}
	var seconds, milliseconds int64
	if _, err := fmt.Fscan(p.out, &seconds, &milliseconds); err != nil {
		p.t.Fatal(err)
	}
	return time.Unix(seconds, 0), time.Duration(milliseconds) * time.Millisecond
}

func TestShift(t *testing.T) {
	p := start(t)
	for _, offset := range []time.Duration{0, time.Hour, -90 * time.Second, 0} {
		if err := Shift(p.cmd.Process.Pid, offset); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		wall, since := p.ask()
		if off := wall.Sub(before.Add(offset)); off < -2*time.Second || off > 10*time.Second {
			t.Errorf("set by %s, the process reads %s, at %s", offset, wall, before)
		}
		if since < 0 || since > time.Minute {
			t.Errorf("set by %s, %s have passed since the process started", offset, since)
		}
	}
}

// A process that does nothing but ask for the time is caught between two questions.
func TestShiftBusyProcess(t *testing.T) {
	p := start(t)
	for i := range 20 {
		if err := Shift(p.cmd.Process.Pid, time.Duration(i)*time.Minute); err != nil {
			t.Fatal(err)
		}
		for range 50 {
			p.ask()
		}
	}
}

func TestShiftRefuses(t *testing.T) {
	p := start(t)
	if err := Shift(p.cmd.Process.Pid, 100*365*24*time.Hour); err == nil {
		t.Error("a hundred years were taken")
	}
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	if err := Shift(p.cmd.Process.Pid, time.Hour); err == nil {
		t.Error("a process that has ended was taken")
	}
}
