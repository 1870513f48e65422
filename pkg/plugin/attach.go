package plugin

import (
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubectl/pkg/util/templates"
)

func newAttach(c *cli) *cobra.Command {
	f := &streamFlags{}
	cmd := &cobra.Command{
		Use:   "attach JOB",
		Short: "Attach to the process that runs in a Pod of a Job, through the hub",
		Long: templates.LongDesc(`
			Attach to the process that a container of a Job's Pod runs, in its worker, through the hub. By default, attach uses
			the newest running Pod. You need permission to create jobs/attach of subresources.jobferry.dev on the hub.

			A container has standard input only if its Pod template has stdin: true, and a terminal only with tty: true. To
			leave a process without ending it, end attach.`),
		Example: templates.Examples(`
			# See what the newest Pod prints from now on
			kubectl jobferry attach pi

			# Talk to a container with stdin: true and tty: true
			kubectl jobferry attach console -it`),
		Args:              positional(1, 1, "a JOB"),
		ValidArgsFunction: c.completeJobs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.connect(cmd, f, args[0], "attach", func(streams corev1.PodAttachOptions) runtime.Object { return &streams })
		},
	}
	f.add(c, cmd)
	return cmd
}
