package ferrytest

import (
	"fmt"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"

	"github.com/jobferry/jobferry/pkg/mirror"
)

// Counters sees all hub Jobs of a test, and whether anything that they count goes back.
type Counters struct {
	mu   sync.Mutex
	back []string
}

// WatchCounters watches the hub Jobs until the test ends.
func (f *Ferry) WatchCounters() *Counters {
	c := &Counters{}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(f.Hub.Client().BatchV1().RESTClient(), "jobs", f.NS, fields.Everything()),
		ObjectType:    &batchv1.Job{},
		Handler:       cache.ResourceEventHandlerFuncs{UpdateFunc: c.compare},
	})
	go informer.RunWithContext(f.Context())
	return c
}

func (c *Counters) compare(before, after any) {
	was, is := before.(*batchv1.Job), after.(*batchv1.Job)
	if is.Status.Succeeded >= was.Status.Succeeded && is.Status.Failed >= was.Status.Failed &&
		(!mirror.Finished(was) || mirror.Finished(is)) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.back = append(c.back, fmt.Sprintf("%s: from %+v to %+v", is.Name, was.Status, is.Status))
}

// ExpectNone fails the test for each time that something went back.
func (c *Counters) ExpectNone(t testing.TB) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, text := range c.back {
		t.Error("went back: " + text)
	}
}
