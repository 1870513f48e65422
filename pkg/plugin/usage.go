package plugin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	accounts "github.com/jobferry/jobferry/pkg/manager/usage"
	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/show"
)

// usageFlags are those of the verb.
type usageFlags struct {
	jobsFlags
	since      string
	prometheus string
}

func newUsage(c *cli) *cobra.Command {
	f := &usageFlags{}
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Show what Jobs used: resource-hours by worker, and their cost",
		Long: templates.LongDesc(`
			Show what the Pods of Jobs requested, multiplied by how long they ran, by worker and resource. REPEATED is the
			part that was lost, for example with a worker, and done again elsewhere. UNKNOWN is what HOURS may lack, because
			some Pods disappeared while their worker was disconnected. COST uses the present prices of the workers (spec.cost).

			The figures come from the existing Jobs: from all that run, and from those that ended within the time. Deleted
			Jobs don't count. With --prometheus, they come from there: from all Pods that ended within the time, including
			those of deleted Jobs.`),
		Example: templates.Examples(`
			# The last week of this namespace
			kubectl jobferry usage --since 7d

			# All namespaces, from Prometheus
			kubectl jobferry usage -A --since 30d --prometheus http://localhost:9090`),
		Args: positional(0, 0, "no argument"),
	}
	f.add(c, cmd)
	out := addReport(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return c.usage(cmd, f, out) }
	cmd.Flags().Lookup("worker").Usage = "Show only what was used in this worker"
	cmd.Flags().StringVar(&f.since, "since", "7d", "How far back to look, such as 12h or 7d")
	cmd.Flags().StringVar(&f.prometheus, "prometheus", "", "URL of a Prometheus that has the manager's metrics")
	return cmd
}

func (c *cli) usage(cmd *cobra.Command, f *usageFlags, out *report) error {
	since, err := durationOf(f.since)
	if err != nil {
		return usage(cmd, "--since: %w", err)
	}
	hub, err := c.hubClient()
	if err != nil {
		return err
	}
	used, err := c.used(cmd, hub, f, since)
	if err != nil {
		return err
	}
	if len(used) == 0 && f.worker != "" {
		if err := checkWorker(cmd.Context(), hub, workerName(f.worker)); err != nil {
			return err
		}
	}
	c.addCosts(cmd.Context(), hub, used)
	if !out.asText() {
		return out.print(c, show.UsageReportOf(used))
	}
	return c.table(show.Usage(used, f.all), "No usage found.")
}

// used is what was used, from Prometheus or from the Jobs.
func (c *cli) used(cmd *cobra.Command, hub client.Client, f *usageFlags, since time.Duration) ([]show.NamespaceUsage, error) {
	if f.prometheus == "" {
		jobs := f.jobsFlags
		jobs.worker = "" // what moved on has used the worker, too
		list, err := c.listJobs(cmd, hub, &jobs, nil)
		if err != nil {
			return nil, err
		}
		return usedBy(list.Items, workerName(f.worker), c.now(), since), nil
	}
	if f.selector != "" {
		return nil, usage(cmd, "--selector: Prometheus doesn't know the labels of Jobs")
	}
	namespace, err := f.namespace(c)
	if err != nil {
		return nil, err
	}
	return fromPrometheus(cmd.Context(), f.prometheus, namespace, workerName(f.worker), since)
}

// usedBy adds up the accounts of Jobs that ran within some time.
func usedBy(jobs []batchv1.Job, worker string, now time.Time, since time.Duration) []show.NamespaceUsage {
	all := usageSums{}
	for i := range jobs {
		for _, u := range show.UsedBy(&jobs[i], now, since) {
			if worker == "" || u.Worker == worker {
				sum := all.of(jobs[i].Namespace, u.Worker, u.Resource)
				sum.Total, sum.Repeated, sum.Unknown = sum.Total+u.Total, sum.Repeated+u.Repeated, sum.Unknown+u.Unknown
			}
		}
	}
	return all.sorted()
}

// usageSums are sums of usage. Jobs may name very many workers and resources.
type usageSums map[usageKey]*show.NamespaceUsage

type usageKey struct {
	namespace, worker string
	resource          corev1.ResourceName
}

func (k usageKey) compare(other usageKey) int {
	return cmp.Or(cmp.Compare(k.namespace, other.namespace), cmp.Compare(k.worker, other.worker), cmp.Compare(k.resource, other.resource))
}

// of is the sum of a namespace for a resource of a worker.
func (s usageSums) of(namespace, worker string, resource corev1.ResourceName) *accounts.Usage {
	key := usageKey{namespace, worker, resource}
	if s[key] == nil {
		s[key] = &show.NamespaceUsage{Namespace: namespace, Usage: accounts.Usage{Worker: worker, Resource: resource}}
	}
	return &s[key].Usage
}

func (s usageSums) sorted() (all []show.NamespaceUsage) {
	for _, key := range slices.SortedFunc(maps.Keys(s), usageKey.compare) {
		all = append(all, *s[key])
	}
	return all
}

// addCosts adds the costs, unless the user lacks permission to list the workers.
func (c *cli) addCosts(ctx context.Context, hub client.Client, used []show.NamespaceUsage) {
	workers, err := listWorkers(ctx, hub)
	if err != nil {
		c.say("The costs can't be told: %v", access.Explain(err))
		return
	}
	prices := map[string]v1alpha1.Cost{}
	for i := range workers {
		prices[workers[i].Name] = workers[i].Spec.Cost
	}
	for i := range used {
		used[i].Cost = used[i].Usage.Cost(prices[used[i].Worker])
	}
}

// durationOf reads a duration, which may be in days.
func durationOf(text string) (time.Duration, error) {
	if days, is := strings.CutSuffix(text, "d"); is {
		n, err := strconv.ParseUint(days, 10, 16)
		if err == nil && n > 0 {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second {
		return 0, fmt.Errorf("%q isn't a time such as 12h or 7d", text)
	}
	return d, nil
}
