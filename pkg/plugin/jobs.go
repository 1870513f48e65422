package plugin

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/show"
	"github.com/jobferry/jobferry/pkg/util/selectors"
)

// jobsFlags select Jobs.
type jobsFlags struct {
	all      bool
	selector string
	worker   string
}

func (f *jobsFlags) add(c *cli, cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&f.all, "all-namespaces", "A", false, "Show Jobs of all namespaces")
	cmd.Flags().StringVarP(&f.selector, "selector", "l", "", "Show only Jobs with these labels")
	cmd.Flags().StringVar(&f.worker, "worker", "", "Show only Jobs that are placed on this worker")
	_ = cmd.RegisterFlagCompletionFunc("worker", c.completeWorkers(-1)) // the flag is there
}

func newJobs(c *cli) *cobra.Command {
	f := &jobsFlags{}
	cmd := &cobra.Command{
		Use:     "jobs [NAME...]",
		Aliases: []string{"job"},
		Short:   "Show Jobs: where each one runs, and why it waits",
		Example: templates.Examples(`
			# The Jobs of this namespace that Jobferry runs
			kubectl jobferry jobs

			# The Jobs on one worker
			kubectl jobferry jobs -A --worker west`),
		ValidArgsFunction: c.completeJobs(-1),
	}
	f.add(c, cmd)
	out := addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 && f.all {
			return usage(cmd, "a NAME needs one namespace: use -n in place of -A")
		}
		hub, err := c.hubClient()
		if err != nil {
			return err
		}
		list, namespace, err := c.listJobs(cmd, hub, f, args)
		if err != nil {
			return err
		}
		if !out.asTable() {
			return out.printNamed(c, args, list)
		}
		return c.printJobs(cmd.Context(), hub, list.Items, namespace, out.format() == wide)
	}
	return cmd
}

func (c *cli) printJobs(ctx context.Context, hub client.Client, jobs []batchv1.Job, namespace string, wide bool) error {
	events, err := eventsOfWaiting(ctx, hub, jobs, namespace)
	if err != nil {
		c.say("warning: the reasons why Jobs wait can't be read: %v", access.Explain(err))
	}
	nothing := "No Jobs of Jobferry found."
	if namespace != "" {
		nothing = fmt.Sprintf("No Jobs of Jobferry found in namespace %s.", namespace)
	}
	columns := show.JobColumns{Namespace: namespace == "", Wide: wide, Line: c.lineOf(ctx, jobs), OutOfTouch: show.OutOfTouch(seenWorkers(ctx, hub))}
	return c.table(show.Jobs(jobs, events, c.now(), columns), nothing)
}

// maxLines bounds the namespaces that the manager is asked about for one table.
const maxLines = 20

// lineOf asks the manager where Jobs are in the line of those that wait. An answer to one of them
// has the others of its namespace. Without an answer, the table doesn't say.
func (c *cli) lineOf(ctx context.Context, jobs []batchv1.Job) map[types.NamespacedName]v1alpha1.WaitingExplanation {
	asked, line := map[string]bool{}, map[types.NamespacedName]v1alpha1.WaitingExplanation{}
	config, err := c.hubConfig()
	for i := range jobs {
		job := &jobs[i]
		if err != nil || len(asked) == maxLines || asked[job.Namespace] || jobview.StateOf(job, jobview.Around{}) != jobview.Pending {
			continue
		}
		asked[job.Namespace] = true
		var subresources *access.Subresources
		if subresources, err = access.NewSubresources(config, client.ObjectKeyFromObject(job)); err != nil {
			continue
		}
		explanation, unanswered := subresources.Why(ctx)
		if unanswered != nil {
			continue
		}
		for _, w := range explanation.Line {
			line[types.NamespacedName{Namespace: job.Namespace, Name: w.Name}] = w.WaitingExplanation
		}
	}
	return line
}

// listJobs returns the Jobs of Jobferry that the flags and arguments select, and their namespace,
// which is empty for all namespaces.
func (c *cli) listJobs(cmd *cobra.Command, hub client.Client, f *jobsFlags, names []string) (*batchv1.JobList, string, error) {
	selector, err := selectors.Parse(f.selector)
	if err != nil {
		return nil, "", usage(cmd, "--selector: %w", err)
	}
	namespace := ""
	if !f.all {
		if namespace, err = c.namespace(); err != nil {
			return nil, "", err
		}
	}
	list := &batchv1.JobList{}
	for _, name := range names {
		job, err := jobNamed(cmd.Context(), hub, types.NamespacedName{Namespace: namespace, Name: jobName(name)})
		if err != nil {
			return nil, "", err
		}
		list.Items = append(list.Items, *job)
	}
	if len(names) > 0 {
		return list, namespace, nil
	}
	err = hub.List(cmd.Context(), list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector})
	list.Items = slices.DeleteFunc(ours(list.Items), func(job batchv1.Job) bool {
		return f.worker != "" && !shards.IsOn(&job, workerName(f.worker))
	})
	return list, namespace, access.Explain(err)
}

// jobNamed returns a Job that Jobferry runs.
func jobNamed(ctx context.Context, hub client.Client, key types.NamespacedName) (*batchv1.Job, error) {
	job := &batchv1.Job{}
	err := hub.Get(ctx, key, job)
	switch {
	case apierrors.IsNotFound(err):
		return nil, access.Advise(fmt.Errorf("there is no Job %s in namespace %s", key.Name, key.Namespace),
			"kubectl jobferry jobs lists the Jobs of a namespace; -n selects another one")
	case err != nil:
		return nil, access.Explain(err)
	case !mirror.Managed(job):
		return nil, access.Advise(fmt.Errorf("the Job %s isn't Jobferry's: its spec.managedBy isn't %s", key.Name, v1alpha1.ManagedByDispatcher),
			"kubectl itself shows its Pods and logs")
	}
	return job, nil
}

// ours returns the Jobs that Jobferry runs.
func ours(jobs []batchv1.Job) []batchv1.Job {
	return slices.DeleteFunc(jobs, func(job batchv1.Job) bool { return !mirror.Managed(&job) })
}

// seenWorkers are those of the hub; nil: users of a namespace may not see them.
func seenWorkers(ctx context.Context, hub client.Client) []v1alpha1.WorkerCluster {
	var workers v1alpha1.WorkerClusterList
	if err := hub.List(ctx, &workers); err != nil {
		return nil
	}
	return workers.Items
}

// eventsOfWaiting reads the events of Jobs, if at least one of them is unfinished.
func eventsOfWaiting(ctx context.Context, hub client.Client, jobs []batchv1.Job, namespace string) ([]corev1.Event, error) {
	if !slices.ContainsFunc(jobs, func(job batchv1.Job) bool { return !mirror.Finished(&job) }) {
		return nil, nil
	}
	return jobEvents(ctx, hub, namespace, "")
}

// jobEvents returns the hub's events of one Job, or, without a UID, of all.
func jobEvents(ctx context.Context, hub client.Client, namespace, uid string) ([]corev1.Event, error) {
	about := fields.Set{"involvedObject.kind": "Job"}
	if uid != "" {
		about["involvedObject.uid"] = uid
	}
	var events corev1.EventList
	err := hub.List(ctx, &events, client.InNamespace(namespace), client.MatchingFieldsSelector{Selector: fields.SelectorFromSet(about)})
	return events.Items, err
}
