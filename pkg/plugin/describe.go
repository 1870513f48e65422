package plugin

import (
	"context"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/show"
)

func newDescribe(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "describe JOB",
		Short: "Show the details of a Job: placement, shards, status and events, on the hub and in the workers",
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
	d := show.Description{Job: job, Workers: seenWorkers(ctx, hub)}
	events, err := jobEvents(ctx, hub, job.Namespace, string(job.UID))
	if err != nil {
		return d, access.Explain(err)
	}
	d.Events = show.Entries(show.Hub, events)
	if workers := shards.WorkersOf(job); len(workers) > 0 {
		addMirrors(ctx, subresources, workers, &d)
		addWorkerEvents(ctx, subresources, &d)
	}
	return d, nil
}

// mirrorsAtOnce bounds the requests for mirrors in flight.
const mirrorsAtOnce = 8

func addMirrors(ctx context.Context, subresources *access.Subresources, workers []string, d *show.Description) {
	mirrors, errs := make([]*batchv1.Job, len(workers)), make([]error, len(workers))
	workqueue.ParallelizeUntil(ctx, mirrorsAtOnce, len(workers), func(i int) {
		mirrors[i], errs[i] = subresources.Mirror(ctx, workers[i])
	})
	d.Mirrors = map[string]*batchv1.Job{}
	for i, worker := range workers {
		if errs[i] != nil {
			d.Problems = append(d.Problems, errs[i].Error())
		} else {
			d.Mirrors[worker] = mirrors[i]
		}
	}
}

// addWorkerEvents reports only what isn't known from the mirrors already.
func addWorkerEvents(ctx context.Context, subresources *access.Subresources, d *show.Description) {
	if len(d.Mirrors) == 0 {
		return
	}
	events, err := subresources.Events(ctx)
	switch {
	case err == nil:
		d.Events = append(d.Events, workerEntries(events)...)
		if len(d.Problems) == 0 {
			d.Problems = events.Warnings
		}
	case !apierrors.IsNotFound(err):
		d.Problems = append(d.Problems, "events: "+err.Error())
	}
}
