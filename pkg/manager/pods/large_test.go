package pods

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/manager/pods/report"
	"github.com/jobferry/jobferry/pkg/util/pages"
)

// slowHub is a hub whose Pods and Jobs no bounded answer has. It counts the answers that are under
// way, and their Pods.
type slowHub struct {
	client.Client
	refused        sync.Map
	now, most, all atomic.Int32
}

func (h *slowHub) answer() {
	h.most.Store(max(h.most.Load(), h.now.Add(1)))
	for range 1000 { // others come meanwhile, if they may
		runtime.Gosched()
	}
	h.now.Add(-1)
	h.all.Add(1)
}

func (h *slowHub) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	h.answer()
	return nil
}

func (h *slowHub) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if _, again := h.refused.LoadOrStore(key, true); !again {
		return pages.ErrTooLarge
	}
	h.answer()
	into.(*metav1.PartialObjectMetadata).UID = "another"
	return nil
}

// A tenant makes the Pods that show his large, and the hub answers each write about one with all of
// it. One is written at a time, and those of others meanwhile.
func TestLargeShadowsAreWrittenInTurn(t *testing.T) {
	w, hub := newSweepWorld(), &slowHub{}
	w.hub, w.clock, w.pace, w.models = hub, clock.RealClock{}, newPace(), newModels(nil)
	const many = 100
	w.create("evil", many, func(s *shadow) { s.bytes = 1 << 20 })
	w.create("team", many, func(*shadow) {})
	remove := func(namespace string) {
		parallel(many, func(i int) {
			if _, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: podOf(namespace, i)}); err != nil {
				t.Error(err)
			}
		})
	}
	if remove("evil"); hub.most.Load() != 1 || hub.all.Load() == many {
		t.Errorf("%d at a time, %d in all", hub.most.Load(), hub.all.Load())
	}
	hub.all.Store(0)
	if remove("team"); hub.all.Load() != many {
		t.Errorf("%d of another namespace's are written", hub.all.Load())
	}
}

// A tenant deletes very many Pods of a Job to which he has given large metadata.
func TestLargeMetadataIsReadInTurn(t *testing.T) {
	hub := &slowHub{}
	r := &reconciler{live: hub, models: newModels(nil)}
	parallel(100, func(i int) {
		s := &seen{name: podOf("evil", i), snapshot: snapshot{now: testNow, pod: &report.Pod{Job: fmt.Sprint("job-", i)}, shadow: &shadow{job: "job"}}}
		if meant, err := r.isMeant(t.Context(), s); meant || err != nil {
			t.Errorf("%v, %v", meant, err)
		}
	})
	if hub.most.Load() != 1 {
		t.Errorf("%d at a time", hub.most.Load())
	}
}

// A Pod is large by what it takes in memory.
func TestLargeShadow(t *testing.T) {
	pod := &corev1.Pod{}
	if s := shadowOf(pod, "w1"); s.bytes != 0 {
		t.Errorf("a small Pod takes %d bytes", s.bytes)
	}
	for i := range 20_000 {
		pod.OwnerReferences = append(pod.OwnerReferences, metav1.OwnerReference{Name: "a", UID: types.UID(fmt.Sprint(i))})
	}
	if s := shadowOf(pod, "w1"); s.bytes < 1<<20 {
		t.Errorf("a Pod of 20,000 owners takes %d bytes", s.bytes)
	}
}

func parallel(n int, do func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	all.Wait()
}
