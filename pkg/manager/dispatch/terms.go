package dispatch

import (
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/mirror"
)

// Terms is what a queue on the hub says of a Job: where it may be, and whether its turn has come.
// The zero value is that of a Job that no queue has a say over.
type Terms struct {
	// Checked: an admission check of ours stands between the Job's queue and its start. Such a Job
	// loses its quota, and so is suspended, when its worker is lost: it's not moved while it counts
	// as running.
	Checked bool
	// Workers that the Job may be placed on, in order of preference. Nil: all.
	Workers []string
	// Reserved: quota is held for the Job, which stays suspended until it's placed.
	Reserved bool
	// Since is the time of that reservation by the queue's clock: it tells one from the next.
	Since time.Time
	// NodeSelector and Tolerations will be added to the Job's Pods when it's resumed.
	NodeSelector map[string]string
	Tolerations  []corev1.Toleration
	// Parallelism will be the Job's when it's resumed. Nil: it stays as it is.
	Parallelism *int32
}

// Allows says whether the Job may be placed on a worker.
func (t *Terms) Allows(worker string) bool {
	return t.Workers == nil || slices.Contains(t.Workers, worker)
}

// Anticipate returns a Job as it will be when it's resumed; one that isn't waiting for that is
// returned as it is. The Job isn't changed.
func (t *Terms) Anticipate(job *batchv1.Job) *batchv1.Job {
	if !t.Reserved || !mirror.Suspended(job) {
		return job
	}
	next := *job // what is changed below is copied
	pods := next.Spec.Template.Spec
	if len(t.NodeSelector) > 0 {
		pods.NodeSelector = maps.Clone(pods.NodeSelector)
		if pods.NodeSelector == nil {
			pods.NodeSelector = map[string]string{}
		}
		maps.Copy(pods.NodeSelector, t.NodeSelector)
	}
	pods.Tolerations = slices.Concat(pods.Tolerations, t.Tolerations)
	next.Spec.Template.Spec = pods
	if t.Parallelism != nil {
		next.Spec.Parallelism = t.Parallelism
	}
	return &next
}
