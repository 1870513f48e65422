package jobview

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// DispatchedJob is a hub Job as users see it. It has the Job's name, UID, labels and resource
// version.
type DispatchedJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Status Status `json:"status"`
}

// Status of a DispatchedJob.
type Status struct {
	State State `json:"state"`
	// Workers that the Job is placed on; several, if its indexes are divided.
	Workers []string `json:"workers,omitempty"`
	// Why the Job waits or failed; empty: it does neither.
	Why string `json:"why,omitempty"`

	// Completions that the Job needs. Unset for a work queue.
	Completions *int32 `json:"completions,omitempty"`
	Active      int32  `json:"active"`
	Ready       *int32 `json:"ready,omitempty"`
	Succeeded   int32  `json:"succeeded"`
	Failed      int32  `json:"failed"`

	StartTime *metav1.Time `json:"startTime,omitempty"`
	// EndTime is when the Job completed or failed.
	EndTime *metav1.Time `json:"endTime,omitempty"`

	// MovedFrom is the worker that the Job was on before.
	MovedFrom string `json:"movedFrom,omitempty"`
	// ClusterSelector selects the workers that the Job may run on.
	ClusterSelector string `json:"clusterSelector,omitempty"`
}

// Of returns what is to be seen of a hub Job.
func Of(job *batchv1.Job, around Around) DispatchedJob {
	state := StateOf(job, around)
	return DispatchedJob{
		ObjectMeta: metav1.ObjectMeta{
			Name: job.Name, Namespace: job.Namespace, UID: job.UID, ResourceVersion: job.ResourceVersion, Generation: job.Generation,
			CreationTimestamp: job.CreationTimestamp, DeletionTimestamp: job.DeletionTimestamp, Labels: job.Labels,
		},
		Status: Status{
			State: state, Workers: shards.WorkersOf(job), Why: why(job, state, around),
			Completions: completions(job), Active: job.Status.Active, Ready: job.Status.Ready,
			Succeeded: job.Status.Succeeded, Failed: job.Status.Failed,
			StartTime: job.Status.StartTime, EndTime: ended(job),
			MovedFrom:       text.Clean(hubstate.Get(job, hubstate.MovedFrom), text.MaxMessage),
			ClusterSelector: text.Clean(job.Annotations[v1alpha1.AnnotationClusterSelector], text.MaxMessage),
		},
	}
}

// completions are unset for a Job without a fixed number of them.
func completions(job *batchv1.Job) *int32 {
	if job.Spec.Completions == nil && ptr.Deref(job.Spec.Parallelism, 1) > 1 {
		return nil
	}
	return ptr.To(ptr.Deref(job.Spec.Completions, 1))
}

func ended(job *batchv1.Job) *metav1.Time {
	if job.Status.CompletionTime != nil {
		return job.Status.CompletionTime
	}
	if failed := mirror.TrueCondition(&job.Status, batchv1.JobFailed); failed != nil {
		return &failed.LastTransitionTime
	}
	return nil
}

// Took is how long the Job has run, or ran, and whether it has started.
func (j *DispatchedJob) Took(now time.Time) (took time.Duration, started bool) {
	if j.Status.StartTime == nil {
		return 0, false
	}
	if j.Status.EndTime != nil {
		now = j.Status.EndTime.Time
	}
	return max(now.Sub(j.Status.StartTime.Time), 0), true
}
