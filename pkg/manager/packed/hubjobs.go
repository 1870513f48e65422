package packed

import (
	"errors"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/jobferry/jobferry/pkg/mirror"
)

// HubJobs limits what the cache of the hub holds of Jobs. A light Job, which has no Pod template,
// is held of those that are suspended or have ended, and of those for which the memory of their
// namespace doesn't suffice. The controller reads it again when it needs the template.
//
// Its Transform is that of the cache, and it handles the cache's events. One serves one manager.
type HubJobs struct {
	// PerNamespace is how much is held of the unfinished Jobs of one namespace that aren't light, as
	// they are packed. One that is larger than largeJob counts as it is when it's unpacked: a few
	// bytes of it become any number.
	PerNamespace resource.QuantityValue

	mu         sync.Mutex
	namespaces map[string]int64
	sizes      map[types.UID]int64
}

// largeJob is up to which size, in bytes of protobuf, many Jobs may be unpacked at once.
const largeJob = 64 << 10

var _ toolscache.ResourceEventHandler = &HubJobs{}

// NewHubJobs returns one with the default limit.
func NewHubJobs() *HubJobs {
	return &HubJobs{
		PerNamespace: resource.QuantityValue{Quantity: resource.MustParse("32Mi")},
		namespaces:   map[string]int64{}, sizes: map[types.UID]int64{},
	}
}

// Validate reports a limit that can't be.
func (h *HubJobs) Validate() error {
	if h.PerNamespace.Sign() < 0 {
		return errors.New("job memory per namespace: must not be negative, but is " + h.PerNamespace.String())
	}
	return nil
}

// Transform keeps of Jobs that aren't ours only what tells that they aren't, and of ours what is
// read. One that is held whole is packed.
func (h *HubJobs) Transform(object any) (any, error) {
	j, ok := object.(*batchv1.Job)
	if !ok {
		return object, nil
	}
	if !mirror.Managed(j) {
		h.release(j)
		return &batchv1.Job{
			TypeMeta: j.TypeMeta,
			ObjectMeta: metav1.ObjectMeta{
				Namespace: j.Namespace, Name: j.Name, UID: j.UID, ResourceVersion: j.ResourceVersion,
			},
			Spec: batchv1.JobSpec{ManagedBy: j.Spec.ManagedBy},
		}, nil
	}
	mirror.Slim(j)
	if !mirror.Light(j) && !mirror.Suspended(j) {
		whole, err := h.whole(j)
		if whole != nil || err != nil {
			return whole, err
		}
	}
	h.release(j)
	mirror.Lighten(j)
	return j, nil
}

// whole packs a Job with its template; nil: the memory of its namespace doesn't suffice.
func (h *HubJobs) whole(j *batchv1.Job) (*Job, error) {
	size := int64(j.Size())
	if size > largeJob && !h.hold(j, size) {
		return nil, nil //nolint:nilnil // it isn't held
	}
	whole, err := New(j)
	if err != nil || size <= largeJob && !h.hold(j, int64(whole.Size())) {
		return nil, err
	}
	return whole, nil
}

// hold counts a Job, and reports whether its namespace's memory suffices.
func (h *HubJobs) hold(j *batchv1.Job, size int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	after := h.namespaces[j.Namespace] - h.sizes[j.UID] + size
	if after > h.PerNamespace.Value() {
		return false
	}
	h.namespaces[j.Namespace], h.sizes[j.UID] = after, size
	return true
}

func (h *HubJobs) release(j *batchv1.Job) {
	h.mu.Lock()
	defer h.mu.Unlock()
	size, held := h.sizes[j.UID]
	if !held {
		return
	}
	delete(h.sizes, j.UID)
	if h.namespaces[j.Namespace] -= size; h.namespaces[j.Namespace] == 0 {
		delete(h.namespaces, j.Namespace)
	}
}

// OnAdd has nothing to do: the transform has seen the Job.
func (h *HubJobs) OnAdd(any, bool) {}

// OnUpdate counts a Job no more that another one of its name has replaced while there was no watch.
func (h *HubJobs) OnUpdate(before, after any) {
	was, ok := before.(*batchv1.Job)
	if is, also := after.(*batchv1.Job); ok && also && was.UID != is.UID {
		h.release(was)
	}
}

// OnDelete counts a Job no more.
func (h *HubJobs) OnDelete(object any) {
	if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	if j, ok := object.(*batchv1.Job); ok {
		h.release(j)
	}
}
