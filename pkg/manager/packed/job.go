package packed

import (
	"fmt"
	"math"
	"strings"
	"unique"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/mirror"
)

// Job is a Job as an informer's store holds it, in two allocations. It isn't changed.
type Job struct {
	// data is namespace/name, the resource version, and the rest in compressed protobuf, without a
	// separator.
	data      string
	managedBy unique.Handle[string]
	// namespace, key and version are where these end in data.
	namespace, key, version uint16
	states                  states
}

// states are the bits of Facts.
type states uint8

const (
	started states = 1 << iota
	suspended
	finished
)

// Facts are what is asked of all Jobs at once.
type Facts struct {
	// Key shares its memory with the Job: what keeps it for longer clones it.
	Key types.NamespacedName
	// ManagedBy is spec.managedBy; empty: it isn't set.
	ManagedBy string
	// Started: the Job has a start time. Finished: it is complete or has failed.
	Started, Suspended, Finished bool
}

// FactsOf returns the facts of a Job.
func FactsOf(job *batchv1.Job) Facts {
	return Facts{
		Key:       types.NamespacedName{Namespace: job.Namespace, Name: job.Name},
		ManagedBy: ptr.Deref(job.Spec.ManagedBy, ""),
		Started:   job.Status.StartTime != nil,
		Suspended: mirror.Suspended(job),
		Finished:  mirror.Finished(job),
	}
}

var (
	_ cache.TransformFunc       = Pack
	_ metav1.ObjectMetaAccessor = &Job{}
	_ runtime.Object            = &Job{}
)

// Pack is the transform of an informer of Jobs. It returns all but batchv1.Jobs as they are.
func Pack(object any) (any, error) {
	if job, ok := object.(*batchv1.Job); ok {
		return New(job)
	}
	return object, nil
}

// New packs a Job. It fails if its namespace, name and version have 64 KiB together.
func New(job *batchv1.Job) (*Job, error) {
	proto, err := marshal(job)
	if err != nil {
		return nil, err
	}
	return packedFrom(job, proto)
}

// marshal encodes a Job without what is held beside it.
func marshal(job *batchv1.Job) ([]byte, error) {
	rest := *job
	rest.Namespace, rest.Name, rest.ResourceVersion = "", "", ""
	proto, err := rest.Marshal()
	if err != nil {
		return nil, fmt.Errorf("pack Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	return proto, nil
}

// packedFrom packs a Job that was marshalled.
func packedFrom(job *batchv1.Job, proto []byte) (*Job, error) {
	key := cache.NewObjectName(job.Namespace, job.Name).String()
	prefix := key + job.ResourceVersion
	if len(prefix) > math.MaxUint16 {
		return nil, fmt.Errorf("pack Job %.300q: its name or version is too long", prefix)
	}
	facts := FactsOf(job)
	return &Job{
		data:      prefix + string(jobCodec.Compress(proto)),
		managedBy: unique.Make(facts.ManagedBy),
		namespace: uint16(len(job.Namespace)), key: uint16(len(key)), version: uint16(len(prefix)), //nolint:gosec // compared above
		states: bits(facts),
	}, nil
}

func bits(of Facts) (s states) {
	if of.Started {
		s |= started
	}
	if of.Suspended {
		s |= suspended
	}
	if of.Finished {
		s |= finished
	}
	return s
}

// Size is how many bytes are held of the Job, less what each has.
func (j *Job) Size() int { return len(j.data) }

// Facts are those of the Job.
func (j *Job) Facts() Facts {
	is := func(state states) bool { return j.states&state != 0 }
	name := strings.TrimPrefix(j.data[j.namespace:j.key], "/")
	return Facts{
		Key:       types.NamespacedName{Namespace: j.data[:j.namespace], Name: name},
		ManagedBy: j.managedBy.Value(), Started: is(started), Suspended: is(suspended), Finished: is(finished),
	}
}

func (j *Job) resourceVersion() string { return j.data[j.key:j.version] }

// Unpack returns the Job, with its kind. Nobody else has it.
func (j *Job) Unpack() *batchv1.Job {
	job := &batchv1.Job{}
	j.unpackInto(job)
	return job
}

func (j *Job) unpackInto(job *batchv1.Job) {
	proto, err := jobCodec.Decompress([]byte(j.data[j.version:]))
	if err == nil {
		err = job.Unmarshal(proto)
	}
	key := j.Facts().Key
	if err != nil {
		panic(fmt.Sprintf("unpack Job %s: %v", key, err)) // can't be: Pack has written it
	}
	job.Namespace, job.Name = strings.Clone(key.Namespace), strings.Clone(key.Name)
	job.ResourceVersion = strings.Clone(j.resourceVersion())
	job.SetGroupVersionKind(jobKind)
}

// GetObjectMeta has what an informer asks of an object: its key and version. The key is one name
// without a namespace, so that the informer's key of it, namespace/name, takes no memory of its
// own.
func (j *Job) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Name: j.data[:j.key], ResourceVersion: j.resourceVersion()}
}

// GetObjectKind implements runtime.Object, for lists of packed Jobs. They don't have their kind.
func (j *Job) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object. Nobody changes a packed Job.
func (j *Job) DeepCopyObject() runtime.Object { return j }
