package plugin

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/show"
)

func newTop(c *cli) *cobra.Command {
	f := &jobsFlags{}
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show the use of the workers, and the progress of unfinished Jobs",
		Long: templates.LongDesc(`
			Show how much of each worker's allocatable resources Pods request, and the progress of the unfinished Jobs of
			the namespace. RATE is how many Pods have succeeded per second, minute or hour, on average since the Job started.
			ETA is the time that the remaining Pods take at that rate.`),
		Example: templates.Examples(`
			# Workers, and the Jobs of this namespace
			kubectl jobferry top

			# All Jobs on one worker
			kubectl jobferry top -A --worker west`),
		Args: positional(0, 0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.top(cmd, f) },
	}
	f.add(c, cmd)
	return cmd
}

func (c *cli) top(cmd *cobra.Command, f *jobsFlags) error {
	hub, err := c.hubClient()
	if err != nil {
		return err
	}
	if err := c.topWorkers(cmd.Context(), hub); err != nil {
		return err
	}
	list, namespace, err := c.listJobs(cmd, hub, f, nil)
	if err != nil {
		return err
	}
	fprintf(c.Out, "\n")
	return c.table(show.TopJobs(list.Items, show.OutOfTouch(seenWorkers(cmd.Context(), hub)), c.now().Truncate(time.Second), namespace == ""), "No unfinished Jobs of Jobferry found.")
}

// topWorkers omits the workers if the user lacks permission to list them.
func (c *cli) topWorkers(ctx context.Context, hub client.Client) error {
	var workers v1alpha1.WorkerClusterList
	err := hub.List(ctx, &workers)
	if apierrors.IsForbidden(err) {
		c.say("You lack permission to list the workers.")
		return nil
	}
	if err != nil {
		return access.Explain(err)
	}
	return c.table(show.TopWorkers(workers.Items), "No workers found.")
}
