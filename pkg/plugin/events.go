package plugin

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/show"
)

func newEvents(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "events JOB",
		Short: "Show the events of a Job and its Pods, from the hub and the workers, in one list",
		Example: templates.Examples(`
			kubectl jobferry events pi`),
		Args:              positional(1, 1, "a JOB"),
		ValidArgsFunction: c.completeJobs(1),
	}
	out := addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		entries, warnings, err := c.gatherEvents(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if out.asTable() {
			err = c.table(show.Timeline(entries, c.now()), "No events found: API servers keep them for an hour.")
		} else {
			list := &corev1.EventList{}
			for _, e := range entries {
				list.Items = append(list.Items, e.Event)
			}
			err = out.print(c, list)
		}
		return cmp.Or(err, c.incomplete("events of the Job "+jobName(args[0]), warnings))
	}
	return cmd
}

// gatherEvents also returns the warnings of which workers events are missing.
func (c *cli) gatherEvents(ctx context.Context, name string) (entries []show.Entry, warnings []string, err error) {
	hub, subresources, err := c.clientsFor(name)
	if err != nil {
		return nil, nil, err
	}
	job, err := jobNamed(ctx, hub, subresources.Job)
	if err != nil {
		return nil, nil, err
	}
	events, err := jobEvents(ctx, hub, job.Namespace, string(job.UID))
	if err != nil {
		return nil, nil, access.Explain(err)
	}
	entries = show.Entries(show.Hub, events)
	if len(shards.WorkersOf(job)) == 0 {
		return entries, nil, nil
	}
	there, err := subresources.Events(ctx)
	if err != nil {
		return nil, nil, err
	}
	return append(entries, workerEntries(there)...), there.Warnings, nil
}

// workerEntries makes entries of the workers' events.
func workerEntries(list *access.EventList) (entries []show.Entry) {
	for i := range list.Items {
		entries = append(entries, show.Entry{From: access.WorkerOf(&list.Items[i]), Event: list.Items[i]})
	}
	return entries
}
