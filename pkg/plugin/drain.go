package plugin

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/plugin/access"
)

func newDrain(c *cli) *cobra.Command {
	var (
		wait    bool
		timeout time.Duration
	)
	cmd := &cobra.Command{
		Use:   "drain NAME",
		Short: "Move a worker's Jobs to other workers, with their progress",
		Long: templates.LongDesc(`
			Move the unfinished Jobs of a worker to other workers, with their progress, and place no new Jobs on it.
			A Job that fits on no other worker continues on this one until another worker has free capacity.

			The command waits until the worker has no unfinished Job. uncordon ends the drain.`),
		Example: templates.Examples(`
			# Before maintenance
			kubectl jobferry drain west

			# After it
			kubectl jobferry uncordon west`),
		Args:              positional(1, 1, "the worker's NAME"),
		ValidArgsFunction: c.completeWorkers(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.drain(cmd, workerName(args[0]), wait, timeout)
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", true, "Wait until the worker has no unfinished Job")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "How long to wait (default: without limit)")
	return cmd
}

func (c *cli) drain(cmd *cobra.Command, name string, wait bool, timeout time.Duration) error {
	ctx, cancel := limit(cmd, timeout)
	defer cancel()
	hub, err := c.hubClient()
	if err != nil {
		return err
	}
	worker, _, err := setWorker(ctx, hub, name, map[string]any{"drain": true})
	if err != nil {
		return err
	}
	if !worker.Spec.Drain {
		return access.Advise(fmt.Errorf("the hub's CRD has no field spec.drain"), "upgrade Jobferry on the hub: the CRD is older than this plugin")
	}
	if !wait {
		fprintf(c.Out, "workercluster.jobferry.dev/%s draining\n", name)
		return nil
	}
	return c.waitDrained(ctx, hub, name)
}

func (c *cli) waitDrained(ctx context.Context, hub client.Client, name string) error {
	worker, report, state := &v1alpha1.WorkerCluster{}, c.sayNew(""), ""
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		var err error
		if worker, err = workerNamed(ctx, hub, name); err != nil {
			return false, err
		}
		if !worker.Spec.Drain {
			return false, fmt.Errorf("somebody ended the drain of %s", name)
		}
		state = drainProgress(worker)
		report(state)
		return jobview.IsDrained(worker), nil
	})
	if canceled(err) {
		return &pendingError{access.Advise(fmt.Errorf("%s: not drained yet", state),
			"kubectl jobferry jobs -A --worker "+name+" shows which Jobs are left, and kubectl jobferry why JOB -n NAMESPACE why one stays; the drain continues until uncordon")}
	}
	if err != nil {
		return err
	}
	fprintf(c.Out, "workercluster.jobferry.dev/%s drained\n", name)
	return nil
}

func drainProgress(worker *v1alpha1.WorkerCluster) string {
	if worker.Status.ObservedGeneration < worker.Generation {
		return fmt.Sprintf("%s: the manager hasn't observed the drain yet", worker.Name)
	}
	text := fmt.Sprintf("%s: %s left", worker.Name, plural(int(worker.Status.Jobs), "unfinished Job"))
	if !meta.IsStatusConditionTrue(worker.Status.Conditions, v1alpha1.ConditionReady) {
		text += "; the worker isn't Ready"
	}
	return text
}
