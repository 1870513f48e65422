package kueue

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/jobferry/jobferry/pkg/manager/group"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// hub is what a lifecycle sees of a hub, and what it does there. A test holds its lock but while it
// waits.
type hub struct {
	sync.Mutex

	served   []string // resources of Kueue
	discover error    // what discovery fails with
	list     error    // what the start of a session fails with
	watch    error    // what the list of CRDs fails with
	metadata *metadatafake.FakeMetadataClient

	asked    int // times, by discovery
	sessions int // that run
	attempts int // to start one
	enqueued int // times that all unplaced Jobs were
	log      []string
	queues   *Queues
}

func (h *hub) ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error) {
	h.Lock()
	defer h.Unlock()
	h.asked++
	if h.discover != nil {
		return nil, h.discover
	}
	if len(h.served) == 0 {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, groupVersion)
	}
	list := &metav1.APIResourceList{}
	for _, name := range h.served {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
	}
	return list, nil
}

func (h *hub) EnqueueRelated(...types.NamespacedName) {}
func (h *hub) EnqueueUnplaced() {
	h.Lock()
	defer h.Unlock()
	h.enqueued++
}

func (h *hub) PlacementResult(types.NamespacedName, types.UID) (PlacementResult, bool) {
	return PlacementResult{}, false
}

func (h *hub) GroupJobs(group.ID) ([]types.NamespacedName, bool) { return nil, true }

func (h *hub) begin(context.Context) (*session, func(), error) {
	h.Lock()
	defer h.Unlock()
	h.attempts++
	if h.list != nil {
		return nil, nil, h.list
	}
	h.sessions++
	return &session{}, func() {
		h.Lock()
		defer h.Unlock()
		h.sessions--
	}, nil
}

func (h *hub) write(_, line string) {
	h.Lock()
	defer h.Unlock()
	h.log = append(h.log, line)
}

// synced reports whether a Job without a queue, and one with a queue, may be placed.
func (h *hub) synced() (without, with bool) {
	queued := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{mirror.LabelKueueQueue: "queue"}}}
	return h.queues.Synced(&batchv1.Job{}), h.queues.Synced(queued)
}

// setCRDs makes the CRDs of these resources, and deletes all others.
func (h *hub) setCRDs(t *testing.T, resources ...string) {
	t.Helper()
	crds := h.metadata.Resource(crdResource)
	list, err := crds.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	missing := sets.New[string]()
	for _, resource := range resources {
		missing.Insert(crdName(resource))
	}
	for _, crd := range list.Items {
		if missing.Has(crd.Name) {
			missing.Delete(crd.Name)
		} else if err := crds.Delete(t.Context(), crd.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for name := range missing {
		crd := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
		crd.SetGroupVersionKind(crdResource.GroupVersion().WithKind("CustomResourceDefinition"))
		if err := h.metadata.Tracker().Create(crdResource, crd, ""); err != nil {
			t.Fatal(err)
		}
	}
}

// lifecycleOf runs a lifecycle for the length of a test, in a bubble.
func lifecycleOf(t *testing.T, h *hub, test func(t *testing.T, wait func(time.Duration))) {
	synctest.Test(t, func(t *testing.T) {
		scheme := metadatafake.NewTestScheme()
		if err := metav1.AddMetaToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		h.queues, h.metadata = New(DefaultOptions()), metadatafake.NewSimpleMetadataClient(scheme)
		h.queues.jobs = h
		h.metadata.PrependReactor("list", crdResource.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return h.watch != nil, nil, h.watch
		})
		logger := funcr.New(h.write, funcr.Options{})
		crds, err := newCRDWatch(h.metadata, logger)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		l := &lifecycle{queues: h.queues, crds: crds, api: h, begin: h.begin, log: logger}
		go func() { ended <- l.Start(ctx) }()
		synctest.Wait()
		h.Lock()
		test(t, func(d time.Duration) {
			h.Unlock()
			defer h.Lock()
			<-time.After(d)
			synctest.Wait()
		})
		h.Unlock()
		cancel()
		if err := <-ended; err != nil || h.sessions != 0 {
			t.Errorf("at the end: %v, %d sessions", err, h.sessions)
		}
	})
}
