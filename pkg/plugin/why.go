package plugin

import (
	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/jobferry/jobferry/pkg/plugin/show"
)

func newWhy(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "why JOB",
		Short: "Show why a Job waits, or could run where it does: all workers, with the numbers",
		Long: templates.LongDesc(`
			Show which workers could run a Job now, and why the others could not, in the words of
			kube-scheduler.

			For a Job that is already placed, the answer says what would happen if it were placed now. Its event Placed has
			the reasons of the actual placement.`),
		Example: templates.Examples(`
			kubectl jobferry why pi

			# With the scheduler's plugins, the Job's fields and the scores
			kubectl jobferry why pi -o wide`),
		Args:              positional(1, 1, "a JOB"),
		ValidArgsFunction: c.completeJobs(1),
	}
	out := addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		subresources, _, err := c.subresourcesOf(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		explanation, err := subresources.Why(cmd.Context())
		if err != nil {
			return err
		}
		if !out.asTable() {
			return out.print(c, explanation)
		}
		return show.Why(c.Out, explanation, out.format() == wide, c.palette())
	}
	return cmd
}
