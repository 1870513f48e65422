package feed

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/packed"
)

// slowNodes takes a node when it's let.
type slowNodes struct {
	seenNodes
	take func()
}

func (s *slowNodes) Set(node *corev1.Node) {
	s.take()
	s.seenNodes.Set(node)
}

// A worker sends large objects faster than they can be taken, in one watch or in several: few of
// them are held meanwhile, and in the end all are taken.
func TestLargeEventsWait(t *testing.T) {
	if job, err := packed.New(forged(0, 3<<20)); err != nil || job.Bytes() < 2<<20 { // makes the codec, which all tests use
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		into  *intake
		to    func(take func()) sink
		event func(i int) (watch.EventType, runtime.Object)
	}{
		"nodes": {nodeIntake(), func(take func()) sink {
			slow := &slowNodes{seenNodes{nodes: map[string]*corev1.Node{}}, take}
			return fanOut[string, *corev1.Node]{(*corev1.Node).GetName, []store[string, *corev1.Node]{slow}, func() {}}.sink
		}, func(i int) (watch.EventType, runtime.Object) {
			labels := map[string]string{}
			for j := range 1000 {
				labels[strings.Repeat("k", 253)+fmt.Sprint("/", j)] = strings.Repeat("x", 60)
			}
			return watch.Added, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i), UID: types.UID(fmt.Sprint(i)), Labels: labels, ResourceVersion: fmt.Sprint(i + 10)}}
		}},
		"versions of one mirror": {mirrorIntake(func() int { return 1 }), func(take func()) sink {
			return mirrorsTo(newMirrorStore(mirrorCallbacks{changed: func(MirrorChange) { take() }})).sink
		}, func(i int) (watch.EventType, runtime.Object) {
			job := forged(0, 10)
			job.ResourceVersion = fmt.Sprint(i + 10)
			job.Annotations[v1alpha1.KeyPrefix+"x"], job.Status.CompletedIndexes = fmt.Sprint(i), strings.Repeat("1", 400_000)
			if i == 0 {
				return watch.Added, job
			}
			return watch.Modified, job
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { largeEventsWait(t, row.into, row.to, row.event) })
		})
	}
}

// mustGoOn is told of a watch that must not fail.
type mustGoOn struct{ *testing.T }

func (mustGoOn) begins() (succeeds, settles <-chan time.Time) { return nil, nil }
func (mustGoOn) succeeded()                                   {}
func (mustGoOn) settled()                                     {}

func (t mustGoOn) failed(err error, _ <-chan struct{}) { t.Error(err) }

func largeEventsWait(t *testing.T, into *intake, to func(take func()) sink, event func(i int) (watch.EventType, runtime.Object)) {
	const all = 40
	taken, let := 0, make(chan struct{})
	watches := make(chan *watch.RaceFreeFakeWatcher)
	from := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return listAll(ctx, options, into, func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				return &corev1.NodeList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil // empty
			})
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			events := watch.NewRaceFreeFake()
			watches <- events
			return into.watch(events, mustGoOn{t}), nil
		},
	}
	informer, _ := to(func() { <-let; taken++ })(
		cache.ToListWatcherWithWatchListSemantics(from, unsupported{}), into, func(context.Context, *cache.Reflector, error) {})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	events := <-watches
	for i := range 6 {
		events.Action(event(i))
	}
	events.Stop()
	events = <-watches
	for i := range all {
		events.Action(event(6 + i))
	}
	synctest.Wait()
	if _, n := into.progress(); n < 7 || n > 15 {
		t.Errorf("%d events of half a megabyte are under way", n)
	}
	close(let)
	synctest.Wait()
	if taken != 6+all {
		t.Errorf("%d are taken, want %d", taken, 6+all)
	}
	cancel()
	running.Wait()
}
