package demo

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/jobferry/jobferry/e2e/demo/scenario"
	"github.com/jobferry/jobferry/e2e/groups/jobsettest"
)

// submit creates the Jobs, as users, a CronJob and JobSet do, in a namespace with Jobferry's label.
func (d *demo) submit(ctx context.Context) error {
	note := fmt.Sprintf("%d ordinary Jobs, in a namespace with the label jobferry.dev/dispatch=enabled", len(d.entries))
	return d.step("Submit the Jobs", note, func() (string, error) {
		if err := d.openNamespaces(ctx); err != nil {
			return "", err
		}
		created := map[string]bool{} // by manifest
		for _, e := range d.entries {
			if created[e.Manifest] {
				continue
			}
			created[e.Manifest] = true
			if err := d.create(ctx, d.hub.Client(), e); err != nil {
				return "", fmt.Errorf("%s: %w", e.Manifest, err)
			}
		}
		return "", nil
	})
}

func (d *demo) create(ctx context.Context, hub kubernetes.Interface, e scenario.Entry) error {
	switch {
	case e.JobSet != nil:
		jobSets, err := jobsettest.Client(d.hub)
		if err != nil {
			return err
		}
		return jobSets.Post().Namespace(scenario.Namespace).Resource("jobsets").Body(e.JobSet).Do(ctx).Error()
	case e.CronJob != nil:
		cron, err := hub.BatchV1().CronJobs(scenario.Namespace).Create(ctx, e.CronJob, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		return createJob(ctx, hub, scenario.FromCronJob(cron, e.Name))
	}
	return createJob(ctx, hub, e.Job)
}

func createJob(ctx context.Context, hub kubernetes.Interface, job *batchv1.Job) error {
	_, err := hub.BatchV1().Jobs(scenario.Namespace).Create(ctx, job, metav1.CreateOptions{})
	return err
}
