package plugin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
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

// namespace is where the Jobs are; empty: in all namespaces.
func (f *jobsFlags) namespace(c *cli) (string, error) {
	if f.all {
		return "", nil
	}
	return c.namespace()
}

// listFlags are those of the verb jobs.
type listFlags struct {
	jobsFlags
	states []string
	sortBy string
	watch  bool
}

func newJobs(c *cli) *cobra.Command {
	f := &listFlags{}
	cmd := &cobra.Command{
		Use:     "jobs [NAME...]",
		Aliases: []string{"job"},
		Short:   "Show Jobs: where each one runs, and why it waits",
		Example: templates.Examples(`
			# The Jobs of this namespace that Jobferry runs
			kubectl jobferry jobs

			# The Jobs on one worker
			kubectl jobferry jobs -A --worker west

			# Those that wait or have failed, the oldest first
			kubectl jobferry jobs --state Pending,Failed --sort-by .metadata.creationTimestamp

			# What changes, until Ctrl-C
			kubectl jobferry jobs -w`),
		ValidArgsFunction: c.completeJobs(-1),
	}
	f.add(c, cmd)
	f.addList(cmd)
	out := addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return c.jobs(cmd, f, out, args) }
	return cmd
}

func (f *listFlags) addList(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.states, "state", nil, "Show only Jobs in these states: "+strings.Join(stateNames(), ", "))
	cmd.Flags().StringVar(&f.sortBy, "sort-by", "",
		"Sort by a field, as a JSONPath expression: one of a Job, such as .metadata.creationTimestamp, or of what users see of it (kubectl explain dj.status), such as .status.state")
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "After listing the Jobs, show what changes")
	// the flag is there
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(stateNames(), cobra.ShellCompDirectiveNoFileComp))
}

func (c *cli) jobs(cmd *cobra.Command, f *listFlags, out output, names []string) error {
	if err := f.check(cmd, names); err != nil {
		return err
	}
	hub, err := c.hubClient()
	if err != nil {
		return err
	}
	found, err := c.listJobs(cmd, hub, &f.jobsFlags, names)
	if err != nil {
		return err
	}
	if !out.asTable() && !f.watch && len(f.states) == 0 && f.sortBy == "" {
		return out.printNamed(c, names, found.JobList) // nothing else is shown of them
	}
	workers, unseen := listWorkers(cmd.Context(), hub)
	around := c.around(cmd.Context(), hub, found, workers)
	listed := found.Items
	found.Items = slices.DeleteFunc(slices.Clone(listed), func(job batchv1.Job) bool { return !f.isInState(&job, around(&job)) })
	if err := sortJobs(cmd, found.Items, around, f.sortBy); err != nil {
		return err
	}
	if f.watch {
		return c.watchJobs(cmd.Context(), f, out, found, listed, names, show.SeenWorkers(workers))
	}
	if !out.asTable() {
		return out.printNamed(c, names, found.JobList)
	}
	columns := show.JobColumns{Namespace: found.namespace == "", Wide: out.format() == wide, Line: c.lineOf(cmd.Context(), found.Items)}
	if err := c.table(show.Jobs(found.Items, around, c.now(), columns), noJobs(found.namespace)); err != nil {
		return err
	}
	switch {
	case access.NotInstalled(unseen):
		c.say("warning: %v", access.Explain(unseen))
	case len(names) == 0 && f.worker == "" && len(f.states) == 0:
		c.sayUndispatched(cmd.Context(), hub, found)
	}
	return nil
}

// noJobs is printed in place of an empty table.
func noJobs(namespace string) string {
	if namespace == "" {
		return "No Jobs of Jobferry found."
	}
	return fmt.Sprintf("No Jobs of Jobferry found in namespace %s.", namespace)
}

const (
	// maxLines bounds the namespaces that the manager is asked about for one table.
	maxLines = 20
	// linesTimeout is how long a table waits for that.
	linesTimeout = 2 * time.Second
)

// lineOf asks the manager where Jobs are in the line of those that wait, for all namespaces at the
// same time. An answer to one of them has the others of its namespace. Without an answer, the table
// doesn't say.
func (c *cli) lineOf(ctx context.Context, jobs []batchv1.Job) map[types.NamespacedName]v1alpha1.WaitingExplanation {
	line := map[types.NamespacedName]v1alpha1.WaitingExplanation{}
	config, err := c.hubConfig()
	if err != nil {
		return line
	}
	ctx, cancel := context.WithTimeout(ctx, linesTimeout)
	defer cancel()
	asked := oneOfEach(jobs)
	answers := make([][]v1alpha1.WaitingJob, len(asked))
	workqueue.ParallelizeUntil(ctx, len(asked), len(asked), func(i int) {
		subresources, err := access.NewSubresources(config, asked[i])
		if err != nil {
			return
		}
		if explanation, err := subresources.Why(ctx); err == nil {
			answers[i] = explanation.Line
		}
	})
	for i, answer := range answers {
		for _, w := range answer {
			line[types.NamespacedName{Namespace: asked[i].Namespace, Name: w.Name}] = w.WaitingExplanation
		}
	}
	return line
}

// oneOfEach returns one Job that waits of each namespace.
func oneOfEach(jobs []batchv1.Job) (keys []types.NamespacedName) {
	for i := range jobs {
		known := slices.ContainsFunc(keys, func(key types.NamespacedName) bool { return key.Namespace == jobs[i].Namespace })
		if len(keys) < maxLines && !known && jobview.StateOf(&jobs[i], jobview.Around{}) == jobview.Pending {
			keys = append(keys, client.ObjectKeyFromObject(&jobs[i]))
		}
	}
	return keys
}

// foundJobs are what flags and arguments select.
type foundJobs struct {
	// JobList are the Jobs that Jobferry runs.
	*batchv1.JobList
	undispatched []batchv1.Job
	// namespace is empty for all namespaces.
	namespace string
}

// listJobs returns the Jobs that the flags and arguments select.
func (c *cli) listJobs(cmd *cobra.Command, hub client.Client, f *jobsFlags, names []string) (*foundJobs, error) {
	selector, err := selectors.Parse(f.selector)
	if err != nil {
		return nil, usage(cmd, "--selector: %w", err)
	}
	found := &foundJobs{JobList: &batchv1.JobList{}}
	if found.namespace, err = f.namespace(c); err != nil {
		return nil, err
	}
	for _, name := range names {
		job, err := c.jobNamed(cmd.Context(), hub, types.NamespacedName{Namespace: found.namespace, Name: jobName(name)})
		if err != nil {
			return nil, err
		}
		found.Items = append(found.Items, *job)
	}
	if len(names) > 0 {
		return found, nil
	}
	err = hub.List(cmd.Context(), found.JobList, client.InNamespace(found.namespace), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return nil, access.Explain(err)
	}
	found.undispatched = slices.DeleteFunc(slices.Clone(found.Items), func(job batchv1.Job) bool { return mirror.Managed(&job) })
	found.Items = slices.DeleteFunc(ours(found.Items), func(job batchv1.Job) bool { return !f.isOnWorker(&job) })
	if len(found.Items) == 0 && f.worker != "" {
		return found, checkWorker(cmd.Context(), hub, workerName(f.worker))
	}
	return found, nil
}

func (f *jobsFlags) isOnWorker(job *batchv1.Job) bool {
	return f.worker == "" || shards.IsOn(job, workerName(f.worker))
}

// ours returns the Jobs that Jobferry runs.
func ours(jobs []batchv1.Job) []batchv1.Job {
	return slices.DeleteFunc(jobs, func(job batchv1.Job) bool { return !mirror.Managed(&job) })
}

// around reads what is known of Jobs beside themselves: their events, if one of them is unfinished,
// and which of the workers are out of touch.
func (c *cli) around(ctx context.Context, hub client.Client, found *foundJobs, workers []v1alpha1.WorkerCluster) func(*batchv1.Job) jobview.Around {
	unfinished := map[jobview.Subject]bool{}
	for i := range found.Items {
		if !mirror.Finished(&found.Items[i]) {
			unfinished[jobview.SubjectOf(&found.Items[i])] = true
		}
	}
	reasons := jobview.Reasons{}
	if len(unfinished) > 0 {
		_, err := access.EachEvent(ctx, hub, found.namespace, "", func(e *corev1.Event) {
			if of, _, ok := jobview.Read(e); ok && unfinished[of] {
				reasons.Note(e)
			}
		})
		if err != nil {
			c.say("warning: the reasons why Jobs wait can't be read: %v", access.Explain(err))
		}
	}
	return jobview.AroundBy(reasons, show.SeenWorkers(workers))
}
