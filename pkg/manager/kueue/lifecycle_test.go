package kueue

import (
	"context"
	"errors"
	"slices"
	"strings"
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
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
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

func (h *hub) Enqueue(...types.NamespacedName) {}
func (h *hub) EnqueueUnplaced() {
	h.Lock()
	defer h.Unlock()
	h.enqueued++
}

func (h *hub) PlacementResult(types.UID) (PlacementResult, bool) {
	return PlacementResult{}, false
}

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
	queued := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{labelQueue: "queue"}}}
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

// Kueue may be installed and removed while the manager runs.
func TestKueueComesAndGoes(t *testing.T) {
	h := &hub{}
	lifecycleOf(t, h, func(t *testing.T, wait func(time.Duration)) {
		if without, with := h.synced(); !without || !with || h.enqueued != 1 || h.sessions != 0 {
			t.Errorf("without Kueue: %+v", h)
		}
		for _, step := range []struct {
			served   []string
			sessions int
			enqueued int
		}{
			{resources[:2], 0, 1}, // an older Kueue
			{slices.Concat(resources, []string{"cohorts"}), 1, 2},
			{resources, 1, 2},
			{resources[1:], 0, 3},
			{resources, 1, 4},
			{nil, 0, 5},
		} {
			h.served = step.served
			h.setCRDs(t, step.served...)
			wait(time.Millisecond)
			if without, with := h.synced(); !without || !with || h.sessions != step.sessions || h.enqueued != step.enqueued {
				t.Errorf("with %v: %v %v %d sessions, %d times enqueued, want %+v", step.served, without, with, h.sessions, h.enqueued, step)
			}
		}
	})
}

// A hub whose API is what its CRDs say isn't asked again without an event.
func TestPoll(t *testing.T) {
	for name, row := range map[string]struct {
		served []string
		crds   []string
		polls  bool
	}{
		"no Kueue":                   {nil, nil, false},
		"some CRDs, not all":         {resources[:2], resources[:2], false},
		"all CRDs, and a session":    {resources, resources, false},
		"all CRDs, not yet served":   {nil, resources, true},
		"CRDs gone, still served":    {resources, nil, true},
		"one CRD gone, still served": {resources, resources[1:], true},
	} {
		t.Run(name, func(t *testing.T) {
			h := &hub{}
			lifecycleOf(t, h, func(t *testing.T, wait func(time.Duration)) {
				h.served = row.served
				h.setCRDs(t, append(resources[:len(resources):len(resources)], "cohorts")...)
				h.setCRDs(t, append(row.crds[:len(row.crds):len(row.crds)], "pods")...)
				wait(time.Millisecond)
				before := h.asked
				h.setCRDs(t, append(row.crds[:len(row.crds):len(row.crds)], "cohorts")...)
				wait(time.Hour)
				if polls := h.asked - before; (polls > 0) != row.polls || polls > int(time.Hour/pollInterval) {
					t.Errorf("asked %d times in an hour, want any: %v", polls, row.polls)
				}
			})
		})
	}
}

// Without the right to list CRDs, the manager dispatches at once, and works with a Kueue that comes
// later. It logs once what is missing, and stops polling once the right is granted.
func TestMissingRightToListCRDs(t *testing.T) {
	h := &hub{watch: apierrors.NewForbidden(crdResource.GroupResource(), "", errors.New("cannot list"))}
	lifecycleOf(t, h, func(t *testing.T, wait func(time.Duration)) {
		if without, with := h.synced(); !without || !with || h.enqueued != 1 {
			t.Errorf("at the start: synced without a queue %v, with one %v; enqueued %d times", without, with, h.enqueued)
		}
		wait(time.Hour)
		if len(h.log) != 1 {
			t.Errorf("logged %d times: %v", len(h.log), h.log)
		}
		for _, part := range []string{"customresourcedefinitions", "cannot list", "kueue.enabled=true", "jobferry-kueue", "--kueue-disabled"} {
			if !strings.Contains(h.log[0], part) {
				t.Errorf("the log doesn't name %s: %s", part, h.log[0])
			}
		}
		h.served = resources
		wait(pollInterval)
		if h.sessions != 1 || h.enqueued != 2 {
			t.Errorf("with Kueue: %d sessions, enqueued %d times", h.sessions, h.enqueued)
		}
		h.watch = nil
		h.setCRDs(t, resources...)
		wait(time.Minute)
		before := h.asked
		wait(time.Hour)
		if h.asked != before || h.sessions != 1 {
			t.Errorf("with the right: asked %d times in an hour, %d sessions", h.asked-before, h.sessions)
		}
	})
}

// A manager without a right that Kueue's integration needs dispatches the Jobs that name no queue.
// It logs which right is missing, asks again less and less often, and takes up the right once it's
// granted.
func TestMissingRight(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Group: kueue.SchemeGroupVersion.Group, Resource: "workloads"}, "", errors.New("cannot list"))
	for name, tc := range map[string]struct{ discover, list error }{
		"to discover Kueue's API": {discover: refused},
		"to list Kueue's objects": {list: refused},
	} {
		t.Run(name, func(t *testing.T) {
			h := &hub{served: resources, discover: tc.discover, list: tc.list}
			lifecycleOf(t, h, func(t *testing.T, wait func(time.Duration)) {
				if without, with := h.synced(); !without || with || h.enqueued != 1 {
					t.Errorf("at the start: synced without a queue %v, with one %v; enqueued %d times", without, with, h.enqueued)
				}
				for _, part := range []string{"workloads", "cannot list", "kueue.enabled=true", "jobferry-kueue", "system:discovery", "--kueue-disabled"} {
					if !strings.Contains(h.log[0], part) {
						t.Errorf("the log doesn't name %s: %s", part, h.log[0])
					}
				}
				wait(time.Hour)
				if len(h.log) < 60 || len(h.log) > 70 || h.enqueued != 1 {
					t.Errorf("%d attempts in an hour, enqueued %d times", len(h.log), h.enqueued)
				}
				h.discover, h.list = nil, nil
				wait(time.Minute)
				if without, with := h.synced(); !without || !with || h.enqueued != 2 || h.sessions != 1 {
					t.Errorf("with the right: synced without a queue %v, with one %v; enqueued %d times, %d sessions", without, with, h.enqueued, h.sessions)
				}
			})
		})
	}
}

// A Kueue that comes, and whose objects can't be listed, isn't passed over: Jobs with a queue wait.
func TestKueueComesUnreadable(t *testing.T) {
	h := &hub{list: errors.New("timeout")}
	lifecycleOf(t, h, func(t *testing.T, wait func(time.Duration)) {
		h.served = resources
		h.setCRDs(t, resources...)
		wait(time.Millisecond)
		if without, with := h.synced(); !without || with || h.attempts == 0 {
			t.Errorf("synced without a queue %v, with one %v; %d attempts", without, with, h.attempts)
		}
	})
}

// A hub that doesn't answer for a while ends no session.
func TestDiscoveryFails(t *testing.T) {
	h := &hub{served: resources}
	lifecycleOf(t, h, func(t *testing.T, wait func(time.Duration)) {
		h.setCRDs(t, resources...)
		wait(time.Minute)
		h.discover = errors.New("connection refused")
		h.setCRDs(t, slices.Concat(resources[1:])...)
		wait(pollInterval)
		if without, with := h.synced(); !without || !with || h.sessions != 1 {
			t.Errorf("synced without a queue %v, with one %v; %d sessions", without, with, h.sessions)
		}
	})
}
