package packed

import (
	"fmt"
	"unique"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/mirror"
)

// Job is a Job as an informer's store holds it. It isn't changed.
type Job struct {
	facts           Facts
	resourceVersion string
	compressed      []byte // protobuf
}

// Facts are what is asked of all Jobs at once.
type Facts struct {
	Key types.NamespacedName
	// ManagedBy is spec.managedBy; empty: it isn't set.
	ManagedBy string
	// Started: the Job has a start time. Finished: it is complete or has failed.
	Started, Suspended, Finished bool
}

// FactsOf returns the facts of a Job.
func FactsOf(job *batchv1.Job) Facts {
	return Facts{
		Key:       types.NamespacedName{Namespace: unique.Make(job.Namespace).Value(), Name: job.Name},
		ManagedBy: unique.Make(ptr.Deref(job.Spec.ManagedBy, "")).Value(),
		Started:   job.Status.StartTime != nil,
		Suspended: mirror.Suspended(job),
		Finished:  mirror.Finished(job),
	}
}

var (
	_ cache.TransformFunc       = Pack
	_ metav1.ObjectMetaAccessor = &Job{}
)

// Pack is the transform of an informer of Jobs. It returns all but Jobs as they are.
func Pack(object any) (any, error) {
	job, ok := object.(*batchv1.Job)
	if !ok {
		return object, nil
	}
	proto, err := job.Marshal()
	if err != nil {
		return nil, fmt.Errorf("pack Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	return &Job{FactsOf(job), job.ResourceVersion, jobCodec.compress(proto)}, nil
}

// Facts are those of the Job.
func (j *Job) Facts() Facts { return j.facts }

// Unpack returns the Job, with its kind. Nobody else has it.
func (j *Job) Unpack() *batchv1.Job {
	var job batchv1.Job
	proto, err := jobCodec.decompress(j.compressed)
	if err == nil {
		err = job.Unmarshal(proto)
	}
	if err != nil {
		panic(fmt.Sprintf("unpack Job %s: %v", j.facts.Key, err)) // can't be: Pack has written it
	}
	job.SetGroupVersionKind(jobKind)
	return &job
}

// GetObjectMeta has what an informer asks of an object: its name and version.
func (j *Job) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: j.facts.Key.Namespace, Name: j.facts.Key.Name, ResourceVersion: j.resourceVersion}
}
