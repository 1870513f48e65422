package chaos

import (
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/jobferry/jobferry/e2e/chaos/checker"
	"github.com/jobferry/jobferry/e2e/chaos/fleet"
	"github.com/jobferry/jobferry/pkg/worker/fence"
)

// removalTime is how long it may take until nothing is left.
const removalTime = 2 * time.Minute

// remove deletes all Jobs on the hub, and holds that nothing of them is left.
func (r *run) remove(ctx context.Context) error {
	r.options.Progress("deleting all Jobs")
	r.recorder.do(func(c *checker.Checker, _ time.Duration) { c.EndOfRun() })
	background := metav1.DeletePropagationBackground
	for _, namespace := range fleet.Namespaces() {
		err := r.fleet.Hub.Client().BatchV1().Jobs(namespace).DeleteCollection(ctx,
			metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{})
		if err != nil {
			return err
		}
	}
	return r.nothingLeft(ctx, r.leftOfJobs)
}

// unregister lets the workers go, and holds that nothing of the hub is left in them.
func (r *run) unregister(ctx context.Context) error {
	r.options.Progress("unregistering the workers")
	if err := r.fleet.Unregister(ctx); err != nil {
		return err
	}
	return r.nothingLeft(ctx, r.leftOfRegistrations)
}

// nothingLeft waits until nothing is listed any more, and reports what still is when the time is
// up.
func (r *run) nothingLeft(ctx context.Context, list func(context.Context) ([]orphan, error)) error {
	var left []orphan
	var err error
	until(ctx, removalTime, func() bool {
		left, err = list(ctx)
		return err == nil && len(left) == 0
	})
	r.recorder.do(func(c *checker.Checker, at time.Duration) {
		for _, o := range left {
			c.Report(checker.Violation{At: at, Rule: checker.Orphan, Job: o.job, Text: o.text})
		}
	})
	return err
}

// orphan is something that should be gone.
type orphan struct{ job, text string }

// leftOfJobs lists hub Jobs, mirrors, and their Pods.
func (r *run) leftOfJobs(ctx context.Context) ([]orphan, error) {
	var left []orphan
	for cluster, client := range r.recorder.clients {
		jobs, err := client.BatchV1().Jobs(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for _, j := range jobs.Items {
			left = append(left, orphanOf(cluster, "Job", &j.ObjectMeta, j.Name))
		}
		pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for _, p := range pods.Items {
			left = append(left, orphanOf(cluster, "Pod", &p.ObjectMeta, p.Labels[batchv1.JobNameLabel]))
		}
	}
	return left, nil
}

// leftOfRegistrations lists Secrets with finalizers, and Leases in workers that the hub still
// holds.
func (r *run) leftOfRegistrations(ctx context.Context) ([]orphan, error) {
	var left []orphan
	hub := r.recorder.clients[r.fleet.Hub.Name()]
	secrets, err := hub.CoreV1().Secrets(fleet.SystemNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	left = append(left, registrations(secrets.Items)...)
	for _, w := range r.fleet.Workers {
		leases, err := leasesOf(ctx, r.recorder.clients[w.Name()])
		if err != nil {
			return nil, err
		}
		for _, l := range leases {
			left = append(left, orphanOf(w.Name(), "Lease", &l.ObjectMeta, ""))
		}
	}
	return left, nil
}

func registrations(secrets []corev1.Secret) []orphan {
	var left []orphan
	for _, s := range secrets {
		if slices.Contains(fleet.WorkerNames(), s.Name) {
			left = append(left, orphanOf("hub", "Secret", &s.ObjectMeta, ""))
		}
	}
	return left
}

// leasesOf are the Leases of hubs in a worker that haven't been released. A hub that has released
// its Lease leaves it there.
func leasesOf(ctx context.Context, client kubernetes.Interface) ([]coordinationv1.Lease, error) {
	list, err := client.CoordinationV1().Leases(fleet.SystemNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(l coordinationv1.Lease) bool {
		read, ofHub := fence.Read(&l)
		return !ofHub || read.Released
	}), nil
}

func orphanOf(cluster, kind string, m *metav1.ObjectMeta, job string) orphan {
	text := fmt.Sprintf("%s: %s %s/%s is left", cluster, kind, m.Namespace, m.Name)
	if m.DeletionTimestamp != nil {
		text += ", being deleted"
	}
	if len(m.Finalizers) > 0 {
		text += fmt.Sprintf(", with finalizers %q", m.Finalizers)
	}
	return orphan{job: job, text: text}
}
