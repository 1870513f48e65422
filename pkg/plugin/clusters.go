package plugin

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/show"
	"github.com/jobferry/jobferry/pkg/util/selectors"
)

func newClusters(c *cli) *cobra.Command {
	var selector string
	cmd := &cobra.Command{
		Use:     "clusters [NAME...]",
		Aliases: []string{"cluster", "wc", "workers", "worker"},
		Short:   "Show the workers, with their state, version, use of resources and Jobs",
		Example: templates.Examples(`
			# All workers
			kubectl jobferry clusters

			# The workers of a region, with labels, settings and messages
			kubectl jobferry clusters -l region=eu -o wide`),
		ValidArgsFunction: c.completeWorkers(-1),
	}
	out := addOutput(cmd)
	cmd.Flags().StringVarP(&selector, "selector", "l", "", "Show only workers with these labels")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		chosen, err := selectors.Parse(selector)
		if err != nil {
			return usage(cmd, "--selector: %w", err)
		}
		hub, err := c.hubClient()
		if err != nil {
			return err
		}
		list, err := workersNamed(cmd.Context(), hub, args, chosen)
		if err != nil {
			return err
		}
		if !out.asTable() {
			return out.printNamed(c, args, list)
		}
		return c.table(show.Workers(list.Items, c.now(), out.format() == wide),
			"No workers found. Register one: kubectl jobferry register --help")
	}
	return cmd
}

// workersNamed returns the workers with these names; without names, all that are selected.
func workersNamed(ctx context.Context, hub client.Client, names []string, selector labels.Selector) (*v1alpha1.WorkerClusterList, error) {
	list := &v1alpha1.WorkerClusterList{}
	if len(names) == 0 {
		err := hub.List(ctx, list, client.MatchingLabelsSelector{Selector: selector})
		return list, access.Explain(err)
	}
	for _, name := range names {
		worker, err := workerNamed(ctx, hub, workerName(name))
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, *worker)
	}
	return list, nil
}

func workerNamed(ctx context.Context, hub client.Client, name string) (*v1alpha1.WorkerCluster, error) {
	worker := &v1alpha1.WorkerCluster{}
	err := hub.Get(ctx, types.NamespacedName{Name: name}, worker)
	if apierrors.IsNotFound(err) && !access.Advised(access.Explain(err)) { // the kind itself may be missing
		return nil, noWorker(ctx, hub, name)
	}
	return worker, access.Explain(err)
}

// noWorker says that a worker isn't there.
func noWorker(ctx context.Context, hub client.Client, name string) error {
	return cmp.Or(checkWorker(ctx, hub, name), fmt.Errorf("there is no WorkerCluster %s", name))
}

// workersShown is how many workers an error names.
const workersShown = 10

// checkWorker fails if the hub has no worker of a name, and names those that it has. Users of a
// namespace may not list them: then nobody knows.
func checkWorker(ctx context.Context, hub client.Client, name string) error {
	workers, err := listWorkers(ctx, hub)
	switch {
	case apierrors.IsForbidden(err):
		return nil
	case err != nil:
		return access.Explain(err)
	}
	return workers.check(name)
}

// check fails if a worker isn't among those of the hub.
func (r registered) check(name string) error {
	names := namesOf(r)
	if slices.Contains(names, name) {
		return nil
	}
	has := "the hub has none: kubectl jobferry register --help"
	if len(names) > 0 {
		has = "the hub has " + named(names, workersShown) + ": kubectl jobferry clusters shows them"
	}
	return access.Advise(fmt.Errorf("there is no WorkerCluster %s", name), has)
}
