package plugin

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	utilexec "k8s.io/client-go/util/exec"

	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/show"
)

// Exit codes; doc.go explains them.
const (
	exitFailed  = 1
	exitUsage   = 2
	exitPending = 3
)

// usageError is an error in the arguments.
type usageError struct {
	command string
	error
}

func (e *usageError) Error() string {
	return fmt.Sprintf("%v\nSee '%s --help'.", e.error, e.command)
}

func (e *usageError) Unwrap() error { return e.error }

// usage returns an error in the arguments.
func usage(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{cmd.CommandPath(), fmt.Errorf(format, args...)}
}

// alsoCheck has a command check its flags after its arguments, before it asks anybody. The command
// has Args already.
func alsoCheck(cmd *cobra.Command, check func(*cobra.Command) error) {
	arguments := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := arguments(cmd, args); err != nil {
			return err
		}
		return check(cmd)
	}
}

// pendingError is a timeout of something that continues.
type pendingError struct{ error }

func (e *pendingError) Unwrap() error { return e.error }

// finish prints an error, and returns the exit code.
func finish(err error, out io.Writer) int {
	var (
		remote  utilexec.ExitError
		arg     *usageError
		pending *pendingError
	)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &remote) && remote.Exited():
		return remote.ExitStatus() // the command has printed why
	}
	fprintf(out, "error: %s\n", access.Explain(err).Error())
	switch {
	case errors.As(err, &arg):
		return exitUsage
	case errors.As(err, &pending):
		return exitPending
	default:
		return exitFailed
	}
}

// fprintf writes to a terminal or a pipe what is printable of a text: much of it comes from API
// servers. An error means that nobody reads it any more.
func fprintf(w io.Writer, format string, args ...any) {
	_, _ = io.WriteString(w, show.Printable(fmt.Sprintf(format, args...)))
}
