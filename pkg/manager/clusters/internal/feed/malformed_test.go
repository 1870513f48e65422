package feed

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// seenNodes are what a store has been told.
type seenNodes struct {
	mu    sync.Mutex
	nodes map[string]*corev1.Node
}

func (s *seenNodes) Set(n *corev1.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes[n.Name] = n
}

func (s *seenNodes) Remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.nodes, name)
}

func (s *seenNodes) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name := range s.nodes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// TestMalformedNamesArentTakenIn has a worker send names that no API server stores, in lists and in
// each kind of event. They are as if they weren't there: the watch goes on, and nothing is listed
// again.
func TestMalformedNamesArentTakenIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const shell, escape = "$(touch${IFS}file)", "n-\x1b[2J"
		node := func(name string, uid types.UID, labels map[string]string) *corev1.Node {
			return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid, Labels: labels, ResourceVersion: "2"}}
		}
		listed := &corev1.NodeList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.Node{
			*node("a", "1", nil), *node(shell, "2", nil), *node("b", "3", nil), *node("c", escape, nil), *node("", "4", nil),
			*node("d", "5", map[string]string{escape: ""}), *node("e", "6", map[string]string{"zone": shell}), *node("f", "7", nil),
		}}
		var lists, malformed atomic.Int32
		into, events, seen := nodeIntake(), watch.NewFakeWithChanSize(20, false), &seenNodes{nodes: map[string]*corev1.Node{}}
		into.malformed = func() { malformed.Add(1) }
		from := &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				lists.Add(1)
				return listAll(ctx, options, into, func(context.Context, metav1.ListOptions) (runtime.Object, error) { return listed, nil })
			},
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				return into.watch(events, mustGoOn{t}), nil
			},
		}
		informer, _ := fanOut[string, *corev1.Node]{(*corev1.Node).GetName, []store[string, *corev1.Node]{seen}, func() {}}.sink(
			cache.ToListWatcherWithWatchListSemantics(from, unsupported{}), into,
			func(_ context.Context, _ *cache.Reflector, err error) { t.Error(err) })
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { informer.RunWithContext(ctx) })

		events.Add(node(escape, "10", nil))
		events.Modify(node(shell, "2", nil))
		events.Delete(node(shell, "2", nil))
		events.Delete(node("a", shell, nil)) // it's the UID of no node
		events.Modify(node("a", shell, nil))
		events.Action(watch.Bookmark, node(shell, "", nil))
		events.Modify(node("b", "3", map[string]string{"zone": escape})) // it isn't as it was, at least
		events.Delete(node("f", "7", map[string]string{escape: ""}))
		events.Add(node("last", "11", nil))
		synctest.Wait()
		if got := seen.Keys(); !slices.Equal(got, []string{"a", "last"}) || lists.Load() != 1 || into.held() != 2 {
			t.Errorf("there are %q after %d lists, and %d are held", got, lists.Load(), into.held())
		}
		if n := malformed.Load(); n != 9 {
			t.Errorf("%d are counted", n)
		}
		cancel()
		running.Wait()
	})
}

// unsupported has a reflector list, and then watch.
type unsupported struct{}

func (unsupported) IsWatchListSemanticsUnSupported() bool { return true }
