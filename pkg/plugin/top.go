package plugin

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/show"
)

func newTop(c *cli) *cobra.Command {
	f := &jobsFlags{}
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show the use of the workers, and the progress of unfinished Jobs",
		Long: templates.LongDesc(`
			Show how much of each worker's allocatable resources Pods request, and the progress of the unfinished Jobs of
			the namespace. RATE is how many Pods have succeeded per second, minute or hour, on average since the Job started.
			ETA is the time that the remaining Pods take at that rate.`),
		Example: templates.Examples(`
			# Workers, and the Jobs of this namespace
			kubectl jobferry top

			# All Jobs on one worker
			kubectl jobferry top -A --worker west`),
		Args: positional(0, 0, "no argument"),
	}
	f.add(c, cmd)
	out := addReport(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return c.top(cmd, f, out) }
	return cmd
}

func (c *cli) top(cmd *cobra.Command, f *jobsFlags, out *report) error {
	hub, err := c.hubClient()
	if err != nil {
		return err
	}
	workers, err := c.topWorkers(cmd.Context(), hub)
	if err != nil {
		return err
	}
	list, err := c.listJobs(cmd, hub, f, nil)
	if err != nil {
		return err
	}
	around := c.around(cmd.Context(), hub, list, workers)
	if !out.asText() {
		return out.print(c, topReport(workers, list.Items, around, c.now().Truncate(time.Second)))
	}
	if workers != nil {
		if err := c.table(show.TopWorkers(workers), "No workers found."); err != nil {
			return err
		}
	}
	fprintf(c.Out, "\n")
	return c.table(show.TopJobs(list.Items, around, c.now().Truncate(time.Second), list.namespace == ""), "No unfinished Jobs of Jobferry found.")
}

// topWorkers are nil if the user lacks permission to list them.
func (c *cli) topWorkers(ctx context.Context, hub client.Client) ([]v1alpha1.WorkerCluster, error) {
	workers, err := listWorkers(ctx, hub)
	if apierrors.IsForbidden(err) {
		c.say("You lack permission to list the workers.")
		return nil, nil
	}
	return workers, access.Explain(err)
}

func topReport(workers []v1alpha1.WorkerCluster, jobs []batchv1.Job, around func(*batchv1.Job) jobview.Around, now time.Time) show.TopReport {
	report := show.TopReport{Jobs: []show.TopJob{}}
	for i := range workers {
		report.Workers = append(report.Workers, show.TopWorkerOf(&workers[i]))
	}
	for i := range jobs {
		if !mirror.Finished(&jobs[i]) {
			report.Jobs = append(report.Jobs, show.TopJobOf(&jobs[i], around, now))
		}
	}
	return report
}
