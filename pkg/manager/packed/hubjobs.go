package packed

import (
	"errors"
	"reflect"
	"slices"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/util/decoded"
)

// HubJobs limits what the cache of the hub holds of Jobs. A light Job, which has no Pod template,
// is held of those that are suspended or have ended, of those for which the memory of their
// namespace doesn't suffice, and of those that take much when they're unpacked. The controller
// reads it again when it needs the template. A light Job that is large nevertheless, or for which
// the memory doesn't suffice either, is held as a stub.
//
// Its Transform is that of the cache, and its Events handles the cache's events. One serves one
// manager.
type HubJobs struct {
	// PerNamespace is how much is held of the Jobs of one namespace, as they are packed, but for
	// those that are light and small. One that is large counts as it is when it's unpacked: a few
	// bytes of it become any number.
	PerNamespace resource.QuantityValue

	mu         sync.Mutex
	namespaces map[string]int64
	sizes      map[types.UID]int64
	// large are the weights of the Jobs of any kind that take much when they're read whole.
	large map[types.UID]int64
}

// Many Jobs may be unpacked at once that have largeJob bytes of protobuf at most, and that take
// largeUnpacked bytes at most then.
//
// Each event of a Job is unpacked by handlers that all tenants share. So a Job isn't held whole
// that takes more than maxUnpacked then, which is more than a Job of few long texts does.
//
// A light Job counts, unless it has usualLight bytes of protobuf at most: that is about as much as
// the manager remembers of each Job besides. One of more than largeJob bytes is held as a stub.
const (
	largeJob      = 64 << 10
	largeUnpacked = 256 << 10
	maxUnpacked   = 2 << 20
	usualLight    = 2 << 10
)

// NewHubJobs returns one with the default limit.
func NewHubJobs() *HubJobs {
	return &HubJobs{
		PerNamespace: resource.QuantityValue{Quantity: resource.MustParse("32Mi")},
		namespaces:   map[string]int64{}, sizes: map[types.UID]int64{}, large: map[types.UID]int64{},
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
// read. One that is held whole is packed. Informers apply it twice to what they list, and the
// second time it changes nothing.
func (h *HubJobs) Transform(object any) (any, error) {
	j, ok := object.(*batchv1.Job)
	if !ok {
		return object, nil
	}
	if !mirror.Light(j) {
		h.weigh(j)
	}
	if !mirror.Managed(j) {
		h.release(j)
		return &batchv1.Job{
			TypeMeta: j.TypeMeta,
			ObjectMeta: metav1.ObjectMeta{
				Namespace: j.Namespace, Name: j.Name, UID: j.UID, ResourceVersion: j.ResourceVersion,
				DeletionTimestamp: j.DeletionTimestamp, Finalizers: foreignFinalizers(j),
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
	h.lighten(j)
	return j, nil
}

// What is held of the finalizers of a Job that isn't ours, if one of them is: it's removed when the
// Job is being deleted, and the others stay. Of a Job with more, whoever made it removes ours.
const (
	maxFinalizers     = 20
	maxFinalizerBytes = 1 << 10
)

func foreignFinalizers(j *batchv1.Job) []string {
	bytes := 0
	for _, f := range j.Finalizers {
		bytes += len(f)
	}
	if len(j.Finalizers) > maxFinalizers || bytes > maxFinalizerBytes || !slices.Contains(j.Finalizers, v1alpha1.FinalizerMirror) {
		return nil
	}
	return j.Finalizers
}

// lighten makes a Job light, or a stub.
func (h *HubJobs) lighten(j *batchv1.Job) {
	mirror.Lighten(j)
	size := int64(j.Size())
	if size > usualLight && size <= largeJob && h.hold(j, size) {
		return
	}
	h.release(j)
	if size > usualLight {
		MakeStub(j)
	}
}

// whole packs a Job with its template; nil: it's too much to unpack, or the memory of its namespace
// doesn't suffice.
func (h *HubJobs) whole(j *batchv1.Job) (*Job, error) {
	proto, err := marshal(j)
	if err != nil {
		return nil, err
	}
	unpacked, _ := decoded.Message(jobType, proto, maxUnpacked)
	isLarge := len(proto) > largeJob || unpacked > largeUnpacked
	// A third of the estimate is for what slices leave behind while they grow.
	if unpacked > maxUnpacked || isLarge && !h.hold(j, max(int64(len(proto)), unpacked/3*2)) {
		return nil, nil //nolint:nilnil // it isn't held
	}
	whole, err := newJob(j, unpacked)
	if err != nil {
		return nil, err
	}
	whole.rest = jobCodec.Pack(proto)
	if !isLarge && !h.hold(j, int64(len(whole.prefix)+len(whole.rest))) {
		return nil, nil //nolint:nilnil // likewise
	}
	whole.share(j.DeepCopy())
	return whole, nil
}

var jobType = reflect.TypeFor[batchv1.Job]()

// SmallWeight is what a Job of the usual size weighs at most.
const SmallWeight = 256 << 10

// Most of what a Job takes while it's read as JSON, beside what is made of it: the text has six
// bytes for a `<` of the protobuf, and it's there in pieces, as a whole, and as the text of a
// field.
const (
	weightOfProtobuf = 24
	// neverHeavy is the size in protobuf up to which any Job weighs SmallWeight at most.
	neverHeavy = 2 << 10
)

// WeightOf is the most that a Job takes in memory while it's read whole, as it came from the hub,
// and at least SmallWeight.
func WeightOf(j *batchv1.Job) int64 {
	size := int64(j.Size())
	if size <= neverHeavy {
		return SmallWeight
	}
	return max(SmallWeight, weightOfProtobuf*size+decoded.Exact(j))
}

// weigh remembers the weight of a Job that isn't small.
func (h *HubJobs) weigh(j *batchv1.Job) {
	weight := WeightOf(j)
	h.mu.Lock()
	defer h.mu.Unlock()
	if delete(h.large, j.UID); weight > SmallWeight {
		h.large[j.UID] = weight
	}
}

// Weight is the most that a Job takes in memory while it's read whole, by what the cache was last
// sent of it.
func (h *HubJobs) Weight(job types.UID) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(SmallWeight, h.large[job])
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

// Events handles the cache's events. Of Jobs that are added it needs none: the transform sees them.
func (h *HubJobs) Events() toolscache.ResourceEventHandlerFuncs {
	return toolscache.ResourceEventHandlerFuncs{UpdateFunc: h.updated, DeleteFunc: h.deleted}
}

// updated counts a Job no more that another one of its name has replaced while there was no watch.
func (h *HubJobs) updated(before, after any) {
	was, ok := before.(*batchv1.Job)
	if is, also := after.(*batchv1.Job); ok && also && was.UID != is.UID {
		h.forget(was)
	}
}

// deleted counts a Job no more.
func (h *HubJobs) deleted(object any) {
	if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	if j, ok := object.(*batchv1.Job); ok {
		h.forget(j)
	}
}

// forget drops all that is known of a Job.
func (h *HubJobs) forget(j *batchv1.Job) {
	h.release(j)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.large, j.UID)
}
