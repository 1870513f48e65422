package plugin

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/util/objectnames"
)

// completionTimeout bounds how long a shell waits for a hub that doesn't answer.
const completionTimeout = 3 * time.Second

// completeWorkers completes names of WorkerClusters, for up to that many arguments; -1: any number.
func (c *cli) completeWorkers(most int) cobra.CompletionFunc {
	return c.completeNames(most, func(ctx context.Context, hub client.Client) ([]string, error) {
		workers, err := listWorkers(ctx, hub)
		return namesOf(workers), err
	})
}

// completeJobs completes names of Jobs that Jobferry runs, for up to that many arguments.
func (c *cli) completeJobs(most int) cobra.CompletionFunc {
	return c.completeNames(most, func(ctx context.Context, hub client.Client) (names []string, err error) {
		namespace, err := c.namespace()
		if err != nil {
			return nil, err
		}
		_, err = access.EachOf(ctx, hub, func() client.ObjectList { return &batchv1.JobList{} }, func(item runtime.Object) {
			if job, is := item.(*batchv1.Job); is && mirror.Managed(job) {
				names = append(names, job.Name)
			}
		}, client.InNamespace(namespace))
		return names, err
	})
}

// completeNamespaces completes names of the hub's namespaces, for users who may list them.
func (c *cli) completeNamespaces(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	return c.completeNames(-1, func(ctx context.Context, hub client.Client) ([]string, error) {
		var list corev1.NamespaceList
		err := hub.List(ctx, &list)
		return namesOf(list.Items), err
	})(cmd, nil, begun)
}

// completeContexts completes the contexts of kubectl's kubeconfig.
func (c *cli) completeContexts(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	return complete(cmd, begun, func(context.Context) ([]string, error) {
		config, err := c.hub.ToRawKubeConfigLoader().RawConfig()
		return slices.Sorted(maps.Keys(config.Contexts)), err
	})
}

// indexesOffered is how many indexes a shell is offered at once.
const indexesOffered = 100

// completeIndexes completes completion indexes of the Job in the arguments.
func (c *cli) completeIndexes(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	return complete(cmd, begun, func(ctx context.Context) (indexes []string, err error) {
		if len(args) == 0 {
			return nil, nil
		}
		_, job, err := c.subresourcesOf(ctx, args[0])
		if err != nil || job == nil || ptr.Deref(job.Spec.CompletionMode, "") != batchv1.IndexedCompletion {
			return nil, err
		}
		return indexesFrom(begun, int(ptr.Deref(job.Spec.Completions, 0))), nil
	})
}

// indexesFrom are the first indexes that begin with these digits. A Job may have two thousand
// million.
func indexesFrom(begun string, completions int) (indexes []string) {
	if begun == "" {
		for i := range min(completions, indexesOffered) {
			indexes = append(indexes, strconv.Itoa(i))
		}
		return indexes
	}
	start, err := strconv.Atoi(begun)
	if err != nil || strconv.Itoa(start) != begun || start < 0 {
		return nil
	}
	for first, width := start, 1; first < completions && len(indexes) < indexesOffered; first, width = first*10, width*10 {
		for i := first; i < min(first+width, completions) && len(indexes) < indexesOffered; i++ {
			indexes = append(indexes, strconv.Itoa(i))
		}
		if start == 0 {
			break // no other index begins with it
		}
	}
	return indexes
}

func (c *cli) completeNames(most int, list func(context.Context, client.Client) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		return complete(cmd, begun, func(ctx context.Context) ([]string, error) {
			if most >= 0 && len(args) >= most {
				return nil, nil
			}
			hub, err := c.hubClient()
			if err != nil {
				return nil, err
			}
			return list(ctx, hub)
		})
	}
}

// complete offers those of the listed names that begin as the word does. A shell may expand what
// it's offered: kubectl up to 1.33 passes it to compgen -W.
func complete(cmd *cobra.Command, begun string, list func(context.Context) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	names, err := list(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, begun) || !objectnames.IsPlain(name) })
	return names, cobra.ShellCompDirectiveNoFileComp
}
