package plugin

import (
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubectl/pkg/util/templates"
)

func newExec(c *cli) *cobra.Command {
	f := &streamFlags{}
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
			return c.connect(cmd, f, args[0], "exec", func(streams corev1.PodAttachOptions) runtime.Object {
				return &corev1.PodExecOptions{
					Container: streams.Container, Stdin: streams.Stdin, Stdout: streams.Stdout, Stderr: streams.Stderr, TTY: streams.TTY,
					Command: args[1:],
				}
			})
		},
	}
	f.add(c, cmd)
	return cmd
}
