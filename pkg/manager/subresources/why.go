package subresources

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// Explainer says which workers could run a hub Job. Its errors are API statuses.
type Explainer interface {
	Explain(ctx context.Context, job types.NamespacedName) (*v1alpha1.PlacementExplanation, error)
}

// why responds with the explanation of a Job's placement, which the leader makes.
func (h *handler) why(w *responseWriter, _ *http.Request, req *request) error {
	done, err := h.pace.begin(req.key.Namespace)
	if err != nil {
		return err
	}
	// It doesn't end with the user's request, or else whoever breaks off could ask again at once.
	ctx, cancel := context.WithTimeout(h.stopping, h.options.RequestTimeout)
	defer cancel()
	explanation, err := h.leader.Explain(ctx, req.key)
	done(err)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, explanation)
	return nil
}

const (
	// pauseFactor is by how much longer than an explanation took its namespace waits for the next one:
	// all that a namespace can have of the leader is a twelfth of a core for each replica.
	pauseFactor = 11
	// maxPaces is how many namespaces are remembered.
	maxPaces = 10_000
)

// pace lets a namespace have one explanation at a time, and a pause after each.
type pace struct {
	clock clock.PassiveClock
	most  time.Duration // that an explanation takes

	mu     sync.Mutex
	pauses *cache.LRUExpireCache // by namespace
}

func newPace(clock clock.PassiveClock, most time.Duration) *pace {
	return &pace{clock: clock, most: most, pauses: cache.NewLRUExpireCacheWithClock(maxPaces, clock)}
}

// begin returns what is to be called with the error at the end, or an API status error. There is no
// pause after an explanation that nobody could begin with.
func (p *pace) begin(namespace string) (done func(error), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, pauses := p.pauses.Get(namespace); pauses {
		return nil, apierrors.NewTooManyRequests(fmt.Sprintf(
			"namespace %q has just asked why a Job is placed or waits: try again later", namespace), retryAfterSeconds)
	}
	began := p.clock.Now()
	p.pauses.Add(namespace, struct{}{}, p.most)
	return func(err error) {
		if apierrors.IsServiceUnavailable(err) {
			p.pauses.Remove(namespace)
			return
		}
		p.pauses.Add(namespace, struct{}{}, pauseFactor*p.clock.Since(began))
	}, nil
}
