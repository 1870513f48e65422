package plugin

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
	"k8s.io/kubectl/pkg/cmd/exec"
	"k8s.io/kubectl/pkg/util/templates"
	"k8s.io/kubectl/pkg/util/term"

	"github.com/jobferry/jobferry/pkg/plugin/access"
)

type execFlags struct {
	choice     podFlags
	container  string
	stdin, tty bool
	quiet      bool
}

func newExec(c *cli) *cobra.Command {
	f := &execFlags{}
	cmd := &cobra.Command{
		Use:   "exec JOB -- COMMAND [args...]",
		Short: "Run a command in a Pod of a Job, through the hub",
		Long: templates.LongDesc(`
			Run a command in a container of a Job's Pod, in its worker, through the hub. By default, the command runs in
			the newest running Pod. You need permission to create jobs/exec of subresources.jobferry.dev on the hub.

			exec returns the exit code of the command.`),
		Example: templates.Examples(`
			# A shell in the newest Pod
			kubectl jobferry exec pi -it -- sh

			# In the Pod of one index
			kubectl jobferry exec shards --index 7 -- df -h /scratch`),
		Args: func(cmd *cobra.Command, args []string) error {
			switch at := cmd.ArgsLenAtDash(); {
			case at == 0 || len(args) == 0:
				return usage(cmd, "a JOB is missing")
			case at != 1 || len(args) == 1:
				return usage(cmd, "the command is missing: kubectl jobferry exec %s -- COMMAND", args[0])
			default:
				return nil
			}
		},
		ValidArgsFunction: c.completeJobs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.choice.check(cmd); err != nil {
				return err
			}
			return c.exec(cmd, f, args[0], args[1:])
		},
	}
	f.choice.add(c, cmd)
	cmd.Flags().StringVarP(&f.container, "container", "c", "", "Container (default: the Pod's only or default one)")
	cmd.Flags().BoolVarP(&f.stdin, "stdin", "i", false, "Pass standard input to the command")
	cmd.Flags().BoolVarP(&f.tty, "tty", "t", false, "Standard input is a terminal")
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "Print only what the command prints")
	return cmd
}

func (c *cli) exec(cmd *cobra.Command, f *execFlags, name string, command []string) error {
	subresources, err := c.subresources(name)
	if err != nil {
		return err
	}
	r := remote{subresources: subresources, choice: f.choice.choice(cmd), container: f.container, command: command,
		streams: &exec.StreamOptions{IOStreams: c.IOStreams, Stdin: f.stdin, TTY: f.tty, Quiet: f.quiet}}
	terminal := r.streams.SetupTTY()
	var sizes remotecommand.TerminalSizeQueue
	if terminal.Raw {
		sizes = sizeQueue{terminal.MonitorSize(terminal.GetSize())}
		r.streams.ErrOut = nil // a terminal has one stream of output
	}
	return terminal.Safe(func() error { return r.run(cmd.Context(), terminal.Raw, sizes) })
}

// remote is a command for a container.
type remote struct {
	subresources *access.Subresources
	choice       access.PodChoice
	container    string
	command      []string
	streams      *exec.StreamOptions
}

// run connects the streams with the command until it ends. An exit code other than 0 is an error.
func (r remote) run(ctx context.Context, tty bool, sizes remotecommand.TerminalSizeQueue) error {
	address := r.subresources.ExecURL(r.choice, &corev1.PodExecOptions{
		Container: r.container, Command: r.command, TTY: tty,
		Stdin: r.streams.Stdin, Stdout: true, Stderr: r.streams.ErrOut != nil,
	})
	err := (&exec.DefaultRemoteExecutor{}).ExecuteWithContext(ctx, address, r.subresources.Config,
		r.streams.In, r.streams.Out, r.streams.ErrOut, tty, sizes)
	if code := (utilexec.ExitError)(nil); err == nil || errors.As(err, &code) {
		return err
	}
	return fmt.Errorf("exec: %w", access.Explain(err))
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
