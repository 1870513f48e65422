package plugin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/preference"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/util/selectors"
	"github.com/jobferry/jobferry/pkg/util/text"
)

func newMove(c *cli) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "move JOB --to WORKER",
		Short: "Have a Job run in a certain worker. One that runs elsewhere moves, with its progress",
		Long: templates.LongDesc(`
			Have a Job run in a certain worker. It sets the Job's annotation jobferry.dev/cluster-selector to a label that no
			other worker has, which an admin gave it (register --labels, or kubectl label workercluster west name=west). A Job
			that runs elsewhere moves as soon as the worker has room for it, with its progress, and stays where it is until
			then. It goes nowhere else until the annotation is changed, even if the worker is drained or lost. The command
			prints what the annotation was.

			You need permission to patch the Job on the hub, and to list WorkerClusters.`),
		Example: templates.Examples(`
			kubectl jobferry move train --to west

			# See what would change
			kubectl jobferry move train --to west --dry-run=server`),
		Args:              positional(1, 1, "a JOB"),
		ValidArgsFunction: c.completeJobs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if to == "" {
				return usage(cmd, "the worker is missing: set --to")
			}
			dryRun, err := cmdutil.GetDryRunStrategy(cmd)
			if err != nil {
				return usage(cmd, "%w", err)
			}
			return c.move(cmd.Context(), args[0], workerName(to), dryRun)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "The worker")
	_ = cmd.RegisterFlagCompletionFunc("to", c.completeWorkers(-1)) // the flag is there
	cmdutil.AddDryRunFlag(cmd)
	return cmd
}

func (c *cli) move(ctx context.Context, name, to string, dryRun cmdutil.DryRunStrategy) error {
	hub, _, job, err := c.openJob(ctx, name)
	if err != nil {
		return err
	}
	workers, err := listWorkers(ctx, hub)
	if err != nil {
		return access.Explain(err)
	}
	if err := workers.check(to); err != nil {
		return err
	}
	if workersOf := shards.WorkersOf(job); slices.Equal(workersOf, []string{to}) {
		fprintf(c.Out, "job.batch/%s is already on %s\n", job.Name, to)
		return nil
	}
	selector, err := workers.selectorFor(job, to)
	if err != nil {
		return fmt.Errorf("the Job %s can't move to %s: %w", job.Name, to, err)
	}
	was := job.Annotations[v1alpha1.AnnotationClusterSelector]
	if err := annotate(ctx, hub, job, selector, dryRun); err != nil {
		return err
	}
	c.sayMoves(job, to, was, selector, dryRun)
	return nil
}

// annotate sets the Job's cluster selector.
func annotate(ctx context.Context, hub client.Client, job *batchv1.Job, selector string, dryRun cmdutil.DryRunStrategy) error {
	if dryRun == cmdutil.DryRunClient {
		return nil
	}
	annotated := job.DeepCopy()
	metav1.SetMetaDataAnnotation(&annotated.ObjectMeta, v1alpha1.AnnotationClusterSelector, selector)
	var options []client.PatchOption
	if dryRun == cmdutil.DryRunServer {
		options = append(options, client.DryRunAll)
	}
	if err := hub.Patch(ctx, annotated, client.MergeFrom(job), options...); err != nil {
		return fmt.Errorf("annotate the Job %s: %w", job.Name, access.Explain(err))
	}
	return nil
}

// sayMoves says what was changed, what comes of it, and how to change it back.
func (c *cli) sayMoves(job *batchv1.Job, to, was, selector string, dryRun cmdutil.DryRunStrategy) {
	suffix := map[cmdutil.DryRunStrategy]string{cmdutil.DryRunClient: " (dry run)", cmdutil.DryRunServer: " (server dry run)"}[dryRun]
	fprintf(c.Out, "job.batch/%s annotated with %s=%s%s\n", job.Name, v1alpha1.AnnotationClusterSelector, selector, suffix)
	undo, before := v1alpha1.AnnotationClusterSelector+"-", "It had no selector"
	if was != "" {
		before = fmt.Sprintf("Its selector was %q", was)
	}
	if dryRun != cmdutil.DryRunNone {
		c.say("Nothing was changed. %s.", before)
		return
	}
	if _, err := selectors.Parse(was); was != "" && err == nil { // so it has nothing that a shell would take for its own
		undo = fmt.Sprintf("--overwrite '%s=%s'", v1alpha1.AnnotationClusterSelector, text.Clean(was, len(was)))
	}
	future := fmt.Sprintf("It goes to %s as soon as there is room.", to)
	if from := shards.WorkersOf(job); len(from) > 0 {
		future = fmt.Sprintf("It stays on %s until there is room on %s, and then moves, with its progress.", strings.Join(from, ", "), to)
	}
	c.say("%s Follow it: kubectl jobferry jobs %s -n %s -w", future, job.Name, job.Namespace)
	c.say("%s. To let it go elsewhere again: kubectl annotate job %s -n %s %s", before, job.Name, job.Namespace, undo)
}

// selectorFor returns a selector of a worker alone, or why the Job can't go there.
func (r registered) selectorFor(job *batchv1.Job, to string) (string, error) {
	worker := &r[slices.IndexFunc(r, func(w v1alpha1.WorkerCluster) bool { return w.Name == to })]
	if err := mayMove(job, worker); err != nil {
		return "", err
	}
	if label := r.labelOf(worker); label != "" {
		return label, nil
	}
	return "", access.Advise(fmt.Errorf("the worker has no label that no other worker has, by which the Job could select it"),
		fmt.Sprintf("an admin of the hub gives it one: kubectl label workercluster %s name=%s", to, to))
}

// labelOf returns a label that only this worker has, as a selector: best one whose value is its
// name.
func (r registered) labelOf(worker *v1alpha1.WorkerCluster) string {
	var own []string
	for key, value := range worker.Labels {
		label := labels.SelectorFromSet(labels.Set{key: value})
		others := slices.ContainsFunc(r, func(w v1alpha1.WorkerCluster) bool {
			return w.Name != worker.Name && label.Matches(labels.Set(w.Labels))
		})
		if !others {
			own = append(own, label.String())
		}
	}
	slices.Sort(own)
	if i := slices.IndexFunc(own, func(label string) bool { return strings.HasSuffix(label, "="+worker.Name) }); i >= 0 {
		return own[i]
	}
	return strings.Join(own[:min(len(own), 1)], "")
}

// obstacles are checked in order; the first that applies is why a Job can't move.
var obstacles = []struct {
	applies func(*batchv1.Job, *v1alpha1.WorkerCluster) bool
	why     string
	advice  string
}{
	{func(j *batchv1.Job, _ *v1alpha1.WorkerCluster) bool { return mirror.Finished(j) }, "it has ended", ""},
	{func(j *batchv1.Job, _ *v1alpha1.WorkerCluster) bool { return j.DeletionTimestamp != nil }, "it's being deleted", ""},
	{func(j *batchv1.Job, _ *v1alpha1.WorkerCluster) bool {
		return j.Annotations[v1alpha1.AnnotationGroup] != ""
	},
		"it's in a group, whose Jobs run in one worker", "set the annotation " + v1alpha1.AnnotationClusterSelector + " of all its Jobs"},
	{func(j *batchv1.Job, _ *v1alpha1.WorkerCluster) bool { return ownerKind(j) == jobSetKind }, "it's of a JobSet, whose Jobs run in one worker", "set the annotation " + v1alpha1.AnnotationClusterSelector + " in all Job templates of the JobSet"},
	{func(j *batchv1.Job, w *v1alpha1.WorkerCluster) bool {
		wanted, err := preference.Parse(j.Annotations)
		step, _ := wanted.StepOf(w.Labels, time.Time{})
		return err != nil || step == preference.None
	}, "no step of its annotation " + v1alpha1.AnnotationClusterPreference + " selects that worker", "change that annotation, or remove it"},
	{func(_ *batchv1.Job, w *v1alpha1.WorkerCluster) bool { return w.Spec.Cordoned || w.Spec.Drain },
		"the worker takes no new Jobs: it's cordoned or drained", "kubectl jobferry uncordon ends that"},
	{func(_ *batchv1.Job, w *v1alpha1.WorkerCluster) bool {
		return !meta.IsStatusConditionTrue(w.Status.Conditions, v1alpha1.ConditionReady)
	}, "the worker isn't Ready", "kubectl jobferry clusters -o wide says why"},
	{func(_ *batchv1.Job, w *v1alpha1.WorkerCluster) bool {
		return meta.IsStatusConditionFalse(w.Status.Conditions, v1alpha1.ConditionSchedulable)
	}, "the worker takes no new Jobs", "its condition Schedulable says why: kubectl jobferry clusters -o yaml"},
}

func mayMove(job *batchv1.Job, to *v1alpha1.WorkerCluster) error {
	for _, o := range obstacles {
		if o.applies(job, to) {
			err := fmt.Errorf("%s", o.why)
			if o.advice != "" {
				err = access.Advise(err, o.advice)
			}
			return err
		}
	}
	return nil
}
