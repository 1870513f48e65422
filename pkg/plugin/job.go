package plugin

import (
	"context"
	"fmt"
	"io"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/cmd/util/podcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/plugin/access"
)

// jobNamed returns a Job that Jobferry runs.
func (c *cli) jobNamed(ctx context.Context, hub client.Client, key types.NamespacedName) (*batchv1.Job, error) {
	job := &batchv1.Job{}
	err := hub.Get(ctx, key, job)
	switch {
	case apierrors.IsNotFound(err), strings.Contains(key.Name, "/"): // no name of a Job has one
		return nil, c.noJob(ctx, hub, key)
	case err != nil:
		return nil, access.Explain(err)
	case !mirror.Managed(job):
		reason := c.undispatchedJob(ctx, hub, job).reason()
		return nil, access.Advise(fmt.Errorf("the Job %s isn't dispatched: %s", key.Name, reason.why),
			strings.Join(append(reason.ways, "until then, kubectl itself shows its Pods and logs"), "\n  "))
	}
	return job, nil
}

// noJob says that a Job isn't there, and whether the name is that of a Pod of one: JOB-SUFFIX, or
// JOB-INDEX-SUFFIX.
func (c *cli) noJob(ctx context.Context, hub client.Client, key types.NamespacedName) error {
	pod := afterKind(key.Name, "po", "pod", "pods")
	for name, tries := pod, 2; tries > 0; tries-- {
		name = name[:max(strings.LastIndex(name, "-"), 0)]
		if name != "" && hub.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: name}, &batchv1.Job{}) == nil {
			return access.NoJob(key, fmt.Sprintf("for the Pod of a Job, name the Job, and the Pod by --pod: kubectl jobferry logs %s --pod %s", name, pod))
		}
	}
	return access.NoJob(key, "")
}

// subresourcesOf makes a client of what belongs to a Job, and reads the Job, so that it's said what
// is wrong with that. The Job is nil for a user who may only read what belongs to it.
func (c *cli) subresourcesOf(ctx context.Context, name string) (*access.Subresources, *batchv1.Job, error) {
	_, subresources, job, err := c.openJob(ctx, name)
	if apierrors.IsForbidden(err) {
		return subresources, nil, nil
	}
	return subresources, job, err
}

// openJob makes both clients of the hub, and reads the Job.
func (c *cli) openJob(ctx context.Context, name string) (hub client.Client, subresources *access.Subresources, job *batchv1.Job, err error) {
	if hub, err = c.hubClient(); err != nil {
		return nil, nil, nil, err
	}
	if subresources, err = c.subresources(name); err != nil {
		return nil, nil, nil, err
	}
	job, err = c.jobNamed(ctx, hub, subresources.Job)
	return hub, subresources, job, err
}

// containerFor returns the container of a Job's Pods that the user means: by default kubectl's
// default, which is told as kubectl does. If it's empty, the manager chooses.
func (c *cli) containerFor(job *batchv1.Job, asked string, quiet bool) string {
	if asked != "" || job == nil {
		return asked
	}
	return containerOf(&corev1.Pod{ObjectMeta: job.Spec.Template.ObjectMeta, Spec: job.Spec.Template.Spec}, "", quiet, c.ErrOut)
}

// containerOf returns the name of a container of a Pod, by default kubectl's default.
func containerOf(pod *corev1.Pod, name string, quiet bool, warn io.Writer) string {
	if name != "" {
		return name
	}
	container, err := podcmd.FindOrDefaultContainerByName(pod, "", quiet, warn)
	if err != nil {
		return "" // the worker explains what is wrong
	}
	return container.Name
}

// askedWorkers are those that are asked each for itself: the one that the user names, or all of a
// Job that runs in several. Without any, the manager asks the Job's.
func askedWorkers(job *batchv1.Job, named string) []string {
	if named != "" {
		return []string{named}
	}
	if job == nil {
		return nil
	}
	return several(shards.WorkersOf(job))
}

// several returns workers, if there is more than one. The only one may be another in a moment.
func several(workers []string) []string {
	if len(workers) < 2 {
		return nil
	}
	return workers
}
