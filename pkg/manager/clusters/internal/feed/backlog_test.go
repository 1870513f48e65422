package feed

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// slowNodes takes a node when it's let.
type slowNodes struct {
	seenNodes
	let chan struct{}
}

func (s *slowNodes) Set(node *corev1.Node) {
	<-s.let
	s.seenNodes.Set(node)
}

// A worker sends large objects faster than they can be taken, in one watch or in several: few of
// them are held meanwhile, and in the end all are taken.
func TestLargeEventsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large := func(i int) *corev1.Node {
			labels := map[string]string{}
			for j := range 1000 {
				labels[strings.Repeat("k", 253)+fmt.Sprint("/", j)] = strings.Repeat("x", 60)
			}
			return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i), UID: types.UID(fmt.Sprint(i)), Labels: labels, ResourceVersion: fmt.Sprint(i + 10)}}
		}
		const all = 40
		into, to := nodeIntake(), &slowNodes{seenNodes{nodes: map[string]*corev1.Node{}}, make(chan struct{})}
		watches := make(chan *watch.RaceFreeFakeWatcher)
		from := &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return listAll(ctx, options, into, func(context.Context, metav1.ListOptions) (runtime.Object, error) {
					return &corev1.NodeList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
				})
			},
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				events := watch.NewRaceFreeFake()
				watches <- events
				return into.watch(events, func(err error) { t.Error(err) }), nil
			},
		}
		informer, _ := fanOut[string, *corev1.Node]{(*corev1.Node).GetName, []store[string, *corev1.Node]{to}, func() {}}.sink(
			cache.ToListWatcherWithWatchListSemantics(from, unsupported{}), into, func(context.Context, *cache.Reflector, error) {})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { informer.RunWithContext(ctx) })
		events := <-watches
		for i := range 6 {
			events.Add(large(i))
		}
		events.Stop()
		events = <-watches
		for i := range all {
			events.Add(large(6 + i))
		}
		synctest.Wait()
		if _, n := into.progress(); n < 7 || n > 15 {
			t.Errorf("%d events of half a megabyte are under way", n)
		}
		close(to.let)
		synctest.Wait()
		if got := len(to.Keys()); got != 6+all {
			t.Errorf("%d nodes are taken, want %d", got, 6+all)
		}
		cancel()
		running.Wait()
	})
}
