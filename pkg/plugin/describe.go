package plugin

import (
	"context"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/show"
)

func newDescribe(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "describe JOB",
		Short: "Show the details of a Job: placement, status and events, on the hub and in the worker",
		Example: templates.Examples(`
			kubectl jobferry describe pi`),
		Args:              positional(1, 1, "a JOB"),
		ValidArgsFunction: c.completeJobs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			hub, subresources, err := c.clientsFor(args[0])
			if err != nil {
				return err
			}
			d, err := gatherDescription(cmd.Context(), hub, subresources)
			if err != nil {
				return err
			}
			return d.Write(c.Out, c.now(), c.palette())
		},
	}
}

// gatherDescription reads all that is known. It fails only if the Job or its events can't be read.
func gatherDescription(ctx context.Context, hub client.Client, subresources *access.Subresources) (show.Description, error) {
	job, err := jobNamed(ctx, hub, subresources.Job)
	if err != nil {
		return show.Description{}, err
	}
	d := show.Description{Job: job}
	var workers v1alpha1.WorkerClusterList
	if err := hub.List(ctx, &workers); err == nil { // users of a namespace may not see them
		d.Workers = workers.Items
	}
	events, err := jobEvents(ctx, hub, job.Namespace, string(job.UID))
	if err != nil {
		return d, access.Explain(err)
	}
	d.Events = show.Entries(show.Hub, events)
	if show.Worker(job) != "" {
		addWorkerSide(ctx, subresources, &d)
	}
	return d, nil
}

func addWorkerSide(ctx context.Context, subresources *access.Subresources, d *show.Description) {
	mirror, err := subresources.Mirror(ctx)
	if err != nil {
		d.MirrorProblem = err.Error()
		return
	}
	d.Mirror = mirror
	events, err := subresources.Events(ctx)
	switch {
	case err == nil:
		d.Events = append(d.Events, show.Entries(show.Worker(d.Job), events.Items)...)
	case !apierrors.IsNotFound(err):
		d.MirrorProblem = "events: " + err.Error()
	}
}
