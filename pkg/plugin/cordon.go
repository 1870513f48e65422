package plugin

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/registration"
)

func newCordon(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "cordon NAME...",
		Short: "Stop placing new Jobs on a worker. Its present Jobs continue",
		Example: templates.Examples(`
			kubectl jobferry cordon west`),
		Args:              positional(1, -1, "a worker's NAME"),
		ValidArgsFunction: c.completeWorkers(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.setWorkers(cmd.Context(), args, "cordoned", map[string]any{"cordoned": true})
		},
	}
}

func newUncordon(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "uncordon NAME...",
		Short: "Place Jobs on a worker again, after cordon or drain",
		Example: templates.Examples(`
			kubectl jobferry uncordon west`),
		Args:              positional(1, -1, "a worker's NAME"),
		ValidArgsFunction: c.completeWorkers(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.setWorkers(cmd.Context(), args, "uncordoned", map[string]any{"cordoned": false, "drain": false})
		},
	}
}

// setWorkers merges fields into the spec of workers.
func (c *cli) setWorkers(ctx context.Context, names []string, done string, spec map[string]any) error {
	hub, err := c.hubClient()
	if err != nil {
		return err
	}
	for _, name := range names {
		worker, changed, err := setWorker(ctx, hub, workerName(name), spec)
		if err != nil {
			return err
		}
		if changed {
			fprintf(c.Out, "workercluster.jobferry.dev/%s %s\n", worker.Name, done)
		} else {
			fprintf(c.Out, "workercluster.jobferry.dev/%s already %s\n", worker.Name, done)
		}
	}
	return nil
}

// setWorker merges fields into the spec of a worker, and reports whether that changed it.
func setWorker(ctx context.Context, hub client.Client, name string, spec map[string]any) (*v1alpha1.WorkerCluster, bool, error) {
	worker, err := workerNamed(ctx, hub, name)
	if err != nil {
		return nil, false, err
	}
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return nil, false, err
	}
	before := worker.Generation
	if err := hub.Patch(ctx, worker, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(registration.FieldManager)); err != nil {
		return nil, false, fmt.Errorf("change worker %s: %w", name, access.Explain(err))
	}
	return worker, worker.Generation != before, nil
}
