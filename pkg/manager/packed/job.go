package packed

import (
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"unique"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/util/decoded"
)

// Job is a Job as an informer's store holds it. What it says isn't changed.
type Job struct {
	// prefix is namespace/name and the resource version, without a separator.
	prefix    string
	managedBy unique.Handle[string]
	// unpacked is set as long as the Job is a recent one. It's removed when rest has been set.
	unpacked atomic.Pointer[batchv1.Job]
	// rest is the Job without its prefix, in compressed protobuf.
	rest string
	// isReplaced: the store has it no more.
	isReplaced atomic.Bool
	// kib is about what it takes unpacked.
	kib uint16
	// namespace and key are where these end in prefix.
	namespace, key uint16
	states         states
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
	unpacked, _ := decoded.Message(jobType, proto, maxUnpacked+1)
	packed, err := newJob(job, unpacked)
	if err != nil {
		return nil, err
	}
	if packed.mayBeRecent() {
		packed.share(job.DeepCopy()) // without the room of what was removed
	} else {
		packed.rest = jobCodec.Pack(proto)
	}
	return packed, nil
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

// newJob returns what is asked of a Job that takes so many bytes unpacked, without the Job.
func newJob(job *batchv1.Job, unpacked int64) (*Job, error) {
	key := cache.NewObjectName(job.Namespace, job.Name).String()
	prefix := key + job.ResourceVersion
	if len(prefix) > math.MaxUint16 {
		return nil, fmt.Errorf("pack Job %.300q: its name or version is too long", prefix)
	}
	facts := FactsOf(job)
	return &Job{
		prefix: prefix, managedBy: unique.Make(facts.ManagedBy), states: bits(facts),
		kib:       uint16(min(unpacked, maxUnpacked)>>10 + 1),        //nolint:gosec // a small number
		namespace: uint16(len(job.Namespace)), key: uint16(len(key)), //nolint:gosec // compared above
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

// Facts are those of the Job.
func (j *Job) Facts() Facts {
	is := func(state states) bool { return j.states&state != 0 }
	name := strings.TrimPrefix(j.prefix[j.namespace:j.key], "/")
	return Facts{
		Key:       types.NamespacedName{Namespace: j.prefix[:j.namespace], Name: name},
		ManagedBy: j.managedBy.Value(), Started: is(started), Suspended: is(suspended), Finished: is(finished),
	}
}

// Bytes is about what it takes while it's a recent one. One that takes too much for that is held
// compressed, and counts maxUnpacked.
func (j *Job) Bytes() int64 { return int64(j.kib) << 10 }

func (j *Job) resourceVersion() string { return j.prefix[j.key:] }

// Unpack returns the Job, with its kind. Nobody else has it.
func (j *Job) Unpack() *batchv1.Job {
	if job := j.unpacked.Load(); job != nil {
		return job.DeepCopy()
	}
	return j.decode()
}

// Shared returns the Job, with its kind. Others have it, and nobody changes it.
func (j *Job) Shared() *batchv1.Job {
	if job := j.unpacked.Load(); job != nil {
		return job
	}
	job := j.decode()
	if j.mayBeRecent() {
		j.share(job)
	}
	return job
}

func (j *Job) mayBeRecent() bool { return j.kib <= maxUnpacked>>10 }

// share makes it a recent one, unless it's that already.
func (j *Job) share(job *batchv1.Job) {
	job.SetGroupVersionKind(jobKind)
	if j.unpacked.CompareAndSwap(nil, job) {
		recently.add(j)
	}
}

// settle holds the Job compressed, when it's no longer a recent one. Each is that once at a time.
func (j *Job) settle() {
	if j.rest == "" {
		if j.isReplaced.Load() {
			return // only handlers that are late have it
		}
		proto, err := marshal(j.unpacked.Load())
		if err != nil {
			panic(err) // can't be: New has marshalled it
		}
		j.rest = jobCodec.Pack(proto)
	}
	j.unpacked.Store(nil)
}

func (j *Job) decode() *batchv1.Job {
	job, key := &batchv1.Job{}, j.Facts().Key
	if err := jobCodec.Unpack(j.rest, job); err != nil {
		panic(fmt.Sprintf("unpack Job %s: %v", key, err)) // can't be: settle or HubJobs have packed it
	}
	job.Namespace, job.Name = strings.Clone(key.Namespace), strings.Clone(key.Name)
	job.ResourceVersion = strings.Clone(j.resourceVersion())
	job.SetGroupVersionKind(jobKind)
	return job
}

// Replaced tells that the store has a Job no more, if it's another one than what replaces it.
func Replaced(before, after any) {
	if job, is := before.(*Job); is && before != after {
		job.isReplaced.Store(true)
	}
}

// GetObjectMeta has what an informer asks of an object: its key and version. The key is one name
// without a namespace, so that the informer's key of it, namespace/name, takes no memory of its
// own.
func (j *Job) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Name: j.prefix[:j.key], ResourceVersion: j.resourceVersion()}
}

// GetObjectKind implements runtime.Object, for lists of packed Jobs. They don't have their kind.
func (j *Job) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object. Nobody changes a packed Job.
func (j *Job) DeepCopyObject() runtime.Object { return j }
