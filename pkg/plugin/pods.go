package plugin

import (
	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/jobferry/jobferry/pkg/plugin/show"
)

func newPods(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pods JOB",
		Short: "Show the Pods of a Job, as they are in its worker",
		Example: templates.Examples(`
			kubectl jobferry pods pi

			# With their nodes
			kubectl jobferry pods pi -o wide`),
		Args:              positional(1, 1, "a JOB"),
		ValidArgsFunction: c.completeJobs(1),
	}
	out := addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		_, subresources, err := c.clients()
		if err != nil {
			return err
		}
		key, err := c.key(args[0])
		if err != nil {
			return err
		}
		pods, err := subresources.Pods(cmd.Context(), key)
		if err != nil {
			return err
		}
		if !out.asTable() {
			return out.print(c, pods)
		}
		return c.table(show.Pods(pods.Items, c.now(), out.format() == wide), "The Job %s has no Pods now.", key.Name)
	}
	return cmd
}
