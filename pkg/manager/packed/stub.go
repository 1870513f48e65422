package packed

import (
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// annotationStub marks a stub. On a Job that isn't light it's the user's, and means nothing.
const annotationStub = v1alpha1.KeyPrefix + "stub"

// Bounds of what a stub keeps: of each annotation, and of the names of workers.
const (
	maxStubValue   = 256
	maxStubWorkers = 32 << 10
)

// What a stub keeps, as the handlers of the cache's events read it.
var (
	stubAnnotations = []string{v1alpha1.AnnotationOnClusterLost, v1alpha1.AnnotationGroup}
	stubKeys        = []hubstate.Key{hubstate.Cluster, hubstate.MovedFrom}
	stubFinalizers  = []string{v1alpha1.FinalizerMirror, metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents}
	stubConditions  = []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed}
)

// MakeStub makes a hub Job light, and removes all that isn't read as soon as the cache is sent it:
// the Job keeps its placement, its state and its numbers. Whoever decides about a stub, or writes
// to it, reads it from the hub before.
func MakeStub(job *batchv1.Job) {
	mirror.Lighten(job)
	annotations := map[string]string{annotationStub: ""}
	for _, key := range stubAnnotations {
		if value, is := job.Annotations[key]; is {
			annotations[key] = strings.Clone(value[:min(len(value), maxStubValue)])
		}
	}
	kept, since := hubstate.Changes{}, hubstate.PlacedAt(job)
	for _, key := range stubKeys {
		value := hubstate.Get(job, key)
		kept[key] = strings.Clone(value[:min(len(value), maxStubValue)])
	}
	if kept[hubstate.Cluster] == "" {
		kept[hubstate.Shards] = namesOf(shards.WorkersOf(job))
	}
	job.Labels, job.Annotations = nil, annotations
	job.Finalizers = slices.DeleteFunc(slices.Clone(stubFinalizers), func(f string) bool { return !slices.Contains(job.Finalizers, f) })
	status := &job.Status
	conditions := status.Conditions
	status.CompletedIndexes, status.FailedIndexes, status.UncountedTerminatedPods, status.Conditions = "", nil, nil, nil
	for _, of := range stubConditions {
		if c := mirror.TrueCondition(&batchv1.JobStatus{Conditions: conditions}, of); c != nil {
			status.Conditions = append(status.Conditions, batchv1.JobCondition{Type: of, Status: c.Status, LastTransitionTime: c.LastTransitionTime})
		}
	}
	status.Conditions = kept.Conditions(job, status.Conditions, since)
}

// namesOf is hubstate.Shards without the shards' amounts.
func namesOf(workers []string) string {
	var names strings.Builder
	for _, worker := range workers {
		if names.Len()+len(worker) > maxStubWorkers {
			break
		}
		if names.Len() > 0 {
			names.WriteByte(';')
		}
		names.WriteString(worker)
	}
	return names.String()
}

// IsStub reports whether a hub Job was read from the cache, and most of it isn't there.
func IsStub(job *batchv1.Job) bool {
	_, marked := job.Annotations[annotationStub]
	return marked && mirror.Light(job)
}
