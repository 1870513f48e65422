package plugin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
	"k8s.io/kubectl/pkg/cmd/exec"
	"k8s.io/kubectl/pkg/cmd/util/podcmd"
	"k8s.io/kubectl/pkg/util/term"

	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// streamFlags say which streams of which container are connected: those of exec and attach.
type streamFlags struct {
	choice     podFlags
	container  string
	stdin, tty bool
	quiet      bool
}

func (f *streamFlags) add(c *cli, cmd *cobra.Command) {
	f.choice.add(c, cmd)
	addContainer(cmd, &f.container)
	cmd.Flags().BoolVarP(&f.stdin, "stdin", "i", false, "Pass standard input to the container")
	cmd.Flags().BoolVarP(&f.tty, "tty", "t", false, "Standard input is a terminal")
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "Print only what the container prints")
}

func addContainer(cmd *cobra.Command, container *string) {
	cmd.Flags().StringVarP(container, "container", "c", "", "Container (default: the one of the annotation "+podcmd.DefaultContainerAnnotationName+", else the first)")
}

// connect connects the terminal with a container of a Job's Pod until the container's side ends.
// The function makes the subresource's options of those that say which streams are connected.
func (c *cli) connect(cmd *cobra.Command, f *streamFlags, job, subresource string, options func(corev1.PodAttachOptions) runtime.Object) error {
	subresources, known, err := c.subresourcesOf(cmd.Context(), job)
	if err != nil {
		return err
	}
	streams := exec.StreamOptions{IOStreams: c.IOStreams, Stdin: f.stdin, TTY: f.tty, Quiet: f.quiet}
	terminal := streams.SetupTTY()
	var sizes remotecommand.TerminalSizeQueue
	if terminal.Raw {
		sizes = sizeQueue{terminal.MonitorSize(terminal.GetSize())}
		streams.ErrOut = nil // a terminal has one stream of output
	}
	address := subresources.SessionURL(subresource, f.choice.choice(cmd), options(corev1.PodAttachOptions{
		Container: c.containerFor(known, f.container, f.quiet), TTY: terminal.Raw, Stdin: streams.Stdin, Stdout: true, Stderr: streams.ErrOut != nil,
	}))
	return terminal.Safe(func() error {
		err := (&exec.DefaultRemoteExecutor{}).ExecuteWithContext(cmd.Context(), address, subresources.Config,
			streams.In, streams.Out, streams.ErrOut, terminal.Raw, sizes)
		return sessionError(subresource, err)
	})
}

// sessionError explains why a session has failed, unless its command has.
func sessionError(subresource string, err error) error {
	if code := (utilexec.ExitError)(nil); err == nil || errors.As(err, &code) || errors.Is(err, context.Canceled) {
		return err
	}
	said := err.Error()
	if _, answer, cut := strings.Cut(said, "unable to upgrade connection: "); cut {
		said = answer // it's the manager's, of which clients keep only the text
	}
	if apierrors.ReasonForError(err) == metav1.StatusReasonUnknown { // the worker may have written it
		err = errors.New(text.Clean(said, text.MaxMessage))
	}
	return fmt.Errorf("%s: %w", subresource, access.Explain(err))
}

// sizeQueue converts the terminal's sizes.
type sizeQueue struct{ term.TerminalSizeQueue }

// Next waits for the next size; nil is the end.
func (q sizeQueue) Next() *remotecommand.TerminalSize {
	size := q.TerminalSizeQueue.Next()
	if size == nil {
		return nil
	}
	return &remotecommand.TerminalSize{Width: size.Width, Height: size.Height}
}
