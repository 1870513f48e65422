package plugin

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// completionTimeout bounds how long a shell hangs on a hub that doesn't answer.
const completionTimeout = 3 * time.Second

type completer = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// completeWorkers completes names of WorkerClusters.
func (c *cli) completeWorkers(most int) completer {
	return c.complete(most, func(ctx context.Context, hub client.Client) ([]string, error) {
		var list v1alpha1.WorkerClusterList
		err := hub.List(ctx, &list)
		var names []string
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return names, err
	})
}

// completeJobs completes names of Jobs that Jobferry runs.
func (c *cli) completeJobs(most int) completer {
	return c.complete(most, func(ctx context.Context, hub client.Client) ([]string, error) {
		namespace, err := c.namespace()
		if err != nil {
			return nil, err
		}
		var list batchv1.JobList
		err = hub.List(ctx, &list, client.InNamespace(namespace))
		var names []string
		for _, job := range ours(list.Items) {
			names = append(names, job.Name)
		}
		return names, err
	})
}

// complete offers names for up to that many arguments; -1: for any number.
func (c *cli) complete(most int, list func(context.Context, client.Client) ([]string, error)) completer {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if most >= 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		hub, err := c.hubClient()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		names, err := list(ctx, hub)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var fit []string
		for _, name := range names {
			if strings.HasPrefix(name, begun) {
				fit = append(fit, name)
			}
		}
		return fit, cobra.ShellCompDirectiveNoFileComp
	}
}
