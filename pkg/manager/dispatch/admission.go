package dispatch

import (
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/mirror"
)

// Admission is what Kueue on the hub decides about a Job: which workers are allowed, and whether it
// is to be placed now. Its zero value is that of a Job without an AdmissionCheck of Jobferry.
type Admission struct {
	// Queued: Kueue manages the Job, and decides when it starts.
	Queued bool
	// Checked: the Job's Workload has an AdmissionCheck of Jobferry. When its worker is lost, Kueue
	// takes the quota back and suspends such a Job, so it isn't moved while it counts as running.
	Checked bool
	// Workers that the Job may be placed on, in order of preference. Nil: all.
	Workers []string
	// QuotaReserved: Kueue has reserved quota for the Job, and the Job stays suspended until it's
	// placed.
	QuotaReserved bool
	// ReservedAt is the time of that reservation by Kueue's clock: it distinguishes reservations.
	ReservedAt time.Time
	// NodeSelector and Tolerations will be added to the Job's Pods when it's resumed.
	NodeSelector map[string]string
	Tolerations  []corev1.Toleration
	// Parallelism will be the Job's when it's resumed. Nil: it stays as it is.
	Parallelism *int32
}

// Allows reports whether the Job may be placed on a worker.
func (a *Admission) Allows(worker string) bool {
	return a.Workers == nil || slices.Contains(a.Workers, worker)
}

// WantsCapacity reports whether a Job's Pods run, or will as soon as Kueue knows its placement.
func (a *Admission) WantsCapacity(job *batchv1.Job) bool {
	return !mirror.Suspended(job) || a.QuotaReserved
}

// AsResumed returns the Job as it will be when Kueue resumes it. It returns the Job itself if the
// Job isn't suspended or has no quota, and never changes it.
func (a *Admission) AsResumed(job *batchv1.Job) *batchv1.Job {
	if !a.QuotaReserved || !mirror.Suspended(job) {
		return job
	}
	next := *job // what is changed below is copied
	pods := next.Spec.Template.Spec
	if len(a.NodeSelector) > 0 {
		pods.NodeSelector = maps.Clone(pods.NodeSelector)
		if pods.NodeSelector == nil {
			pods.NodeSelector = map[string]string{}
		}
		maps.Copy(pods.NodeSelector, a.NodeSelector)
	}
	pods.Tolerations = slices.Concat(pods.Tolerations, a.Tolerations)
	next.Spec.Template.Spec = pods
	if a.Parallelism != nil {
		next.Spec.Parallelism = a.Parallelism
	}
	return &next
}
