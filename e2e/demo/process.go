package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/jobferry/jobferry/e2e/rig/process"
)

// stopTime is how long a process may take to end after it was asked to.
const stopTime = 10 * time.Second

// program is one of Jobferry's own programs, running.
type program struct {
	name string
	*process.Process
}

func startProgram(name, logFile, file string, args ...string) (program, error) {
	p, err := process.Start(exec.Command(file, args...), logFile)
	return program{name, p}, err
}

// plugin runs a command of the plugin, as somebody does who looks around, and returns what it
// prints.
func (d *demo) plugin(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, d.program(pluginProgram), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+d.kubeconfig())
	text, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = fmt.Errorf("kubectl jobferry %s: %w: %s", strings.Join(args, " "), err, failed.Stderr)
	}
	return string(text), err
}

// failure says how the program ended, if nobody asked it to. To be called after that.
func (p program) failure() error {
	if state := p.State(); !state.Success() {
		return fmt.Errorf("%s ended by itself: %s", p.name, state)
	}
	return errors.New(p.name + " ended by itself")
}
