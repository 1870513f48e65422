package plugin

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/plugin/show"
)

func newDescribe(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "describe JOB",
		Short: "Show the details of a Job: placement, shards, status and events, on the hub and in the workers",
		Example: templates.Examples(`
			kubectl jobferry describe pi`),
		Args:              positional(1, 1, "a JOB"),
		ValidArgsFunction: c.completeJobs(1),
	}
	out := addReport(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		d, err := c.gatherDescription(cmd.Context(), args[0])
		switch {
		case err != nil:
			return err
		case out.asText():
			return d.Write(c.Out, c.now(), c.palette())
		}
		report, err := descriptionOf(d)
		if err != nil {
			return err
		}
		return out.print(c, report)
	}
	return cmd
}

// description is what describe prints for programs.
type description struct {
	State jobview.State `json:"state"`
	Why   string        `json:"why,omitempty"`
	// Job is the hub's. Mirrors are those of the workers that could be read, by worker.
	Job     *batchv1.Job            `json:"job"`
	Mirrors map[string]*batchv1.Job `json:"mirrors"`
	// Problems are why others couldn't be read, or their events.
	Problems []string         `json:"problems"`
	Events   []describedEvent `json:"events"`
}

// describedEvent is an event of the hub or a worker.
type describedEvent struct {
	From         string `json:"from"`
	corev1.Event `json:",inline"`
}

func descriptionOf(d show.Description) (*description, error) {
	is := &description{Job: d.Job, Mirrors: map[string]*batchv1.Job{}, Problems: append([]string{}, d.Problems...), Events: []describedEvent{}}
	for _, e := range show.InOrder(d.Events) {
		e.Event.ManagedFields = nil
		is.Events = append(is.Events, describedEvent{e.From, e.Event})
	}
	seen := jobview.Of(d.Job, d.Around())
	is.State, is.Why = seen.Status.State, seen.Status.Why
	maps.Copy(is.Mirrors, d.Mirrors)
	for _, job := range append(slices.Collect(maps.Values(is.Mirrors)), is.Job) {
		job.ManagedFields = nil
		if err := typed(job); err != nil {
			return nil, err
		}
	}
	return is, nil
}

// gatherDescription reads all that is known. It fails only if the Job or its events can't be read.
func (c *cli) gatherDescription(ctx context.Context, name string) (show.Description, error) {
	hub, subresources, job, err := c.openJob(ctx, name)
	if err != nil {
		return show.Description{}, err
	}
	d := show.Description{Job: job}
	d.Workers, _ = listWorkers(ctx, hub) // a user who may not see them sees the rest
	var reading sync.WaitGroup
	if workers := shards.WorkersOf(job); len(workers) > 0 {
		reading.Go(func() { d.Mirrors, d.Problems = subresources.MirrorsOf(ctx, workers) })
	}
	events, warnings, err := c.timeline(ctx, hub, subresources, job)
	reading.Wait()
	d.Events = events
	if len(d.Problems) == 0 { // else they say the same
		d.Problems = warnings
	}
	return d, err
}
