package kubelet

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

// remotecommandCommand is the parameter with a command and its arguments.
const remotecommandCommand = "command"

// endOfInput is how long a command that has ended waits for the rest of its input, which nobody
// needs.
const endOfInput = 100 * time.Millisecond

// executor runs commands in a Pod's stead.
type executor struct{ pod *corev1.Pod }

// ExecInContainer runs a command and returns when it has ended, or the client has gone.
func (e executor) ExecInContainer(ctx context.Context, _, _, _ string, command []string, in io.Reader, out, errOut io.WriteCloser,
	_ bool, _ <-chan remotecommand.TerminalSize, _ time.Duration,
) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOSTNAME=" + e.pod.Name,
		"JOB_COMPLETION_INDEX=" + e.pod.Annotations[batchv1.JobCompletionIndexAnnotation],
	}
	cmd.Stdin, cmd.Stdout = in, out
	if errOut != nil {
		cmd.Stderr = errOut
	}
	cmd.WaitDelay = endOfInput
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil // it succeeded, and left its input open
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return utilexec.CodeExitError{Err: err, Code: exit.ExitCode()}
	}
	return err
}
