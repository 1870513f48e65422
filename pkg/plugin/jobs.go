package plugin

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/show"
)

// jobsFlags say which Jobs are meant.
type jobsFlags struct {
	all      bool
	selector string
	worker   string
}

func (f *jobsFlags) add(c *cli, cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&f.all, "all-namespaces", "A", false, "Jobs of all namespaces")
	cmd.Flags().StringVarP(&f.selector, "selector", "l", "", "Only Jobs with these labels")
	cmd.Flags().StringVar(&f.worker, "worker", "", "Only Jobs that are placed on this worker")
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

			# What runs on a worker
			kubectl jobferry jobs -A --worker west`),
		ValidArgsFunction: c.completeJobs(-1),
	}
	f.add(c, cmd)
	out := addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 && f.all {
			return usage(cmd, "a NAME can't be looked for in all namespaces: use -n")
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
			if len(args) == 1 {
				return out.print(c, &list.Items[0])
			}
			return out.print(c, list)
		}
		return c.printJobs(cmd.Context(), hub, list.Items, namespace, out.format() == wide)
	}
	return cmd
}

func (c *cli) printJobs(ctx context.Context, hub client.Client, jobs []batchv1.Job, namespace string, wide bool) error {
	events, err := eventsOfWaiting(ctx, hub, jobs, namespace)
	if err != nil {
		c.say("warning: why Jobs wait isn't known: %v", access.Explain(err))
	}
	if namespace == "" {
		return c.table(show.Jobs(jobs, events, c.now(), show.JobColumns{Namespace: true, Wide: wide}), "No Jobs of Jobferry found.")
	}
	return c.table(show.Jobs(jobs, events, c.now(), show.JobColumns{Wide: wide}),
		"No Jobs of Jobferry found in namespace %s.", namespace)
}

// listJobs are the Jobs of Jobferry that the flags and arguments choose. The namespace is empty for
// all.
func (c *cli) listJobs(cmd *cobra.Command, hub client.Client, f *jobsFlags, names []string) (*batchv1.JobList, string, error) {
	selector, err := labels.Parse(f.selector)
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
	list.Items = ours(list.Items)
	if f.worker != "" {
		list.Items = placedOn(list.Items, workerName(f.worker))
	}
	return list, namespace, access.Explain(err)
}

// jobNamed is a Job that Jobferry runs.
func jobNamed(ctx context.Context, hub client.Client, key types.NamespacedName) (*batchv1.Job, error) {
	job := &batchv1.Job{}
	err := hub.Get(ctx, key, job)
	switch {
	case err != nil && client.IgnoreNotFound(err) == nil:
		return nil, access.Advise(fmt.Errorf("there is no Job %s in namespace %s", key.Name, key.Namespace),
			"kubectl jobferry jobs lists those of a namespace; -n names another one")
	case err != nil:
		return nil, access.Explain(err)
	case !mirror.Managed(job):
		return nil, access.Advise(fmt.Errorf("the Job %s isn't Jobferry's: its spec.managedBy isn't %s", key.Name, v1alpha1.ManagedByDispatcher),
			"kubectl itself shows its Pods and logs")
	}
	return job, nil
}

// ours are the Jobs that Jobferry runs.
func ours(jobs []batchv1.Job) []batchv1.Job {
	return keep(jobs, mirror.Managed)
}

func placedOn(jobs []batchv1.Job, worker string) []batchv1.Job {
	return keep(jobs, func(job *batchv1.Job) bool { return job.Annotations[v1alpha1.AnnotationCluster] == worker })
}

func keep(jobs []batchv1.Job, wanted func(*batchv1.Job) bool) []batchv1.Job {
	kept := jobs[:0]
	for i := range jobs {
		if wanted(&jobs[i]) {
			kept = append(kept, jobs[i])
		}
	}
	return kept
}

// eventsOfWaiting reads the events of Jobs, if one of these waits for something.
func eventsOfWaiting(ctx context.Context, hub client.Client, jobs []batchv1.Job, namespace string) ([]corev1.Event, error) {
	for i := range jobs {
		if !mirror.Finished(&jobs[i]) {
			return jobEvents(ctx, hub, namespace, "")
		}
	}
	return nil, nil
}

// jobEvents are the hub's events of one Job, or of all.
func jobEvents(ctx context.Context, hub client.Client, namespace, uid string) ([]corev1.Event, error) {
	about := fields.Set{"involvedObject.kind": "Job"}
	if uid != "" {
		about["involvedObject.uid"] = uid
	}
	var events corev1.EventList
	err := hub.List(ctx, &events, client.InNamespace(namespace), client.MatchingFieldsSelector{Selector: fields.SelectorFromSet(about)})
	return events.Items, err
}
