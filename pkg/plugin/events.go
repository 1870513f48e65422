package plugin

import (
	"context"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/show"
)

func newEvents(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "events JOB",
		Short: "Show the events of a Job and its Pods, from the hub and the worker, in one list",
		Example: templates.Examples(`
			kubectl jobferry events pi`),
		Args:              positional(1, 1, "a JOB"),
		ValidArgsFunction: c.completeJobs(1),
	}
	out := addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		entries, err := c.gatherEvents(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if !out.asTable() {
			list := &corev1.EventList{}
			for _, e := range entries {
				list.Items = append(list.Items, e.Event)
			}
			return out.print(c, list)
		}
		return c.table(show.Timeline(entries, c.now()), "No events found: API servers keep them for an hour.")
	}
	return cmd
}

func (c *cli) gatherEvents(ctx context.Context, name string) ([]show.Entry, error) {
	hub, subresources, err := c.clientsFor(name)
	if err != nil {
		return nil, err
	}
	job, err := jobNamed(ctx, hub, subresources.Job)
	if err != nil {
		return nil, err
	}
	events, err := jobEvents(ctx, hub, job.Namespace, string(job.UID))
	if err != nil {
		return nil, access.Explain(err)
	}
	entries := show.Entries(show.Hub, events)
	if show.Worker(job) == "" {
		return entries, nil
	}
	worker, err := subresources.Events(ctx)
	if err != nil {
		return nil, err
	}
	return append(entries, show.Entries(show.Worker(job), worker.Items)...), nil
}
