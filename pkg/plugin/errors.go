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

// Exit codes, see doc.go.
const (
	exitFailed   = 1
	exitUsage    = 2
	exitNotThere = 3
)

// usageError is about the arguments.
type usageError struct {
	command string
	err     error
}

func (e *usageError) Error() string {
	return fmt.Sprintf("%v\nSee '%s --help'.", e.err, e.command)
}

func (e *usageError) Unwrap() error { return e.err }

// usage makes an error about the arguments.
func usage(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{cmd.CommandPath(), fmt.Errorf(format, args...)}
}

// notThereError is about something that may still come.
type notThereError struct{ err error }

func (e *notThereError) Error() string { return e.err.Error() }
func (e *notThereError) Unwrap() error { return e.err }

// finish tells of an error, and returns the exit code.
func finish(err error, out io.Writer) int {
	var (
		remote   utilexec.ExitError
		arg      *usageError
		notThere *notThereError
	)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &remote) && remote.Exited():
		return remote.ExitStatus() // the command has said why
	}
	fprintf(out, "error: %s\n", show.Printable(access.Explain(err).Error()))
	switch {
	case errors.As(err, &arg):
		return exitUsage
	case errors.As(err, &notThere):
		return exitNotThere
	default:
		return exitFailed
	}
}

// fprintf writes to a terminal or a pipe: when that is gone, nobody is left to tell.
func fprintf(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }
