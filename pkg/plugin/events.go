package plugin

import (
	"cmp"
	"context"
	"sync"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/show"
	"github.com/jobferry/jobferry/pkg/util/decoded"
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
		hub, subresources, job, err := c.openJob(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		entries, warnings, err := c.timeline(cmd.Context(), hub, subresources, job)
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
		return cmp.Or(err, c.incomplete("events of the Job "+job.Name, warnings))
	}
	return cmd
}

// timeline reads the events of hub and workers at the same time. It fails only if those of the hub
// can't be read; of the others, the warnings say what is missing.
func (c *cli) timeline(
	ctx context.Context, hub client.Client, subresources *access.Subresources, job *batchv1.Job,
) (entries []show.Entry, warnings []string, err error) {
	var there []show.Entry
	var reading sync.WaitGroup
	if workers := shards.WorkersOf(job); len(workers) > 0 {
		reading.Go(func() { there, warnings = workerEntries(ctx, subresources, several(workers)) })
	}
	var last jobview.LastEvents
	large := 0
	_, err = access.EachEvent(ctx, hub, job.Namespace, string(job.UID), func(e *corev1.Event) {
		if e.ManagedFields = nil; decoded.Size(e) > access.MaxEventBytes {
			large++
			return
		}
		held := *e // else its page is held
		last.Add(&held)
	})
	reading.Wait()
	events, others := last.Get()
	if others += large; others > 0 {
		c.say("warning: the hub has %d more events of the Job, which are older or large", others)
	}
	return append(show.Entries(show.Hub, events), there...), warnings, access.Explain(err)
}

// workerEntries are the workers' events. A mirror that isn't there yet, or any more, has none.
func workerEntries(ctx context.Context, subresources *access.Subresources, workers []string) (entries []show.Entry, warnings []string) {
	list, err := subresources.EventsOf(ctx, workers)
	switch {
	case (apierrors.IsNotFound(err) || apierrors.IsConflict(err)) && !access.Advised(err):
		return nil, nil
	case err != nil:
		return nil, []string{err.Error()}
	}
	for i := range list.Items {
		entries = append(entries, show.Entry{From: access.WorkerOf(&list.Items[i]), Event: list.Items[i]})
	}
	return entries, list.Warnings
}
