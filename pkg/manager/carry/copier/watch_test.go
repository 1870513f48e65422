package copier

import (
	"context"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/jobferry/jobferry/pkg/manager/carry"
)

// hubInformers stands for a cache of the hub.
type hubInformers struct {
	asked []string
	err   error
	last  *controllertest.FakeInformer
}

func (h *hubInformers) GetInformer(_ context.Context, o client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	h.asked = append(h.asked, o.GetObjectKind().GroupVersionKind().Kind)
	h.last = controllertest.NewFakeInformer()
	return h.last, h.err
}

func (h *hubInformers) Start(context.Context) error { return nil }

func TestWatch(t *testing.T) {
	hub, tracker, enqueued := &hubInformers{}, NewTracker(clocktesting.NewFakePassiveClock(noon)), []types.NamespacedName(nil)
	w := &Watch{
		cache: hub, tracker: tracker, watched: map[carry.Kind]bool{},
		enqueue: func(_ time.Duration, jobs ...types.NamespacedName) { enqueued = append(enqueued, jobs...) },
	}
	for range 2 {
		if err := w.Add(t.Context(), carry.Secret); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(hub.asked, []string{"Secret"}) {
		t.Errorf("watches %q", hub.asked)
	}
	tracker.Track(in(train), sourceOf("x"))
	tracker.Record(in(train), Copied{Mirror: "mirror", Seen: map[Source]string{sourceOf("x"): "7"}})
	at := func(name, version string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, ResourceVersion: version}}
	}
	hub.last.Add(at("x", "7"))
	hub.last.Add(at("y", "9"))
	hub.last.Update(at("x", "7"), at("x", "7"))
	if len(enqueued) > 0 {
		t.Errorf("woke %v without news", enqueued)
	}
	hub.last.Update(at("x", "7"), at("x", "10"))
	hub.last.Delete(at("x", "11"))
	if !slices.Equal(enqueued, []types.NamespacedName{train}) {
		t.Errorf("woke %v", enqueued)
	}
}

func TestWatchThatFails(t *testing.T) {
	hub := &hubInformers{err: context.DeadlineExceeded}
	w := &Watch{cache: hub, watched: map[carry.Kind]bool{}}
	if err := w.Add(t.Context(), carry.ConfigMap); err == nil {
		t.Error("no error")
	}
	hub.err = nil
	if err := w.Add(t.Context(), carry.ConfigMap); err != nil || len(hub.asked) != 2 {
		t.Errorf("isn't tried again: %v", err)
	}
}

// What is cached of a Secret is hardly more than its name.
func TestNameAndVersion(t *testing.T) {
	full := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "x", UID: "uid", ResourceVersion: "7",
		Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"data":{}}`}, Labels: map[string]string{"a": "b"},
	}}
	got, err := nameAndVersion(full)
	slim, ok := got.(*metav1.PartialObjectMetadata)
	if err != nil || !ok || slim.Name != "x" || slim.Namespace != "team" || slim.ResourceVersion != "7" ||
		len(slim.Annotations)+len(slim.Labels) > 0 {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := nameAndVersion("tombstone"); got != "tombstone" || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}
