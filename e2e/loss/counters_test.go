package loss_test

import (
	"fmt"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"

	"github.com/jobferry/jobferry/pkg/mirror"
)

// counters sees all hub Jobs of a test, and whether anything that they count goes back.
type counters struct {
	mu   sync.Mutex
	back []string
}

func (s *scene) watchCounters() *counters {
	s.t.Helper()
	c := &counters{}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(s.Hub.Client().BatchV1().RESTClient(), "jobs", s.NS, fields.Everything()),
		ObjectType:    &batchv1.Job{},
		Handler:       cache.ResourceEventHandlerFuncs{UpdateFunc: c.compare},
	})
	go informer.RunWithContext(s.Context())
	return c
}

func (c *counters) compare(before, after any) {
	was, is := before.(*batchv1.Job), after.(*batchv1.Job)
	if is.Status.Succeeded >= was.Status.Succeeded && is.Status.Failed >= was.Status.Failed &&
		(!mirror.Finished(was) || mirror.Finished(is)) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.back = append(c.back, fmt.Sprintf("%s: from %+v to %+v", is.Name, was.Status, is.Status))
}

func (c *counters) expectNone(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, text := range c.back {
		t.Error("went back: " + text)
	}
}
