package hub

import (
	"context"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/jobferry/jobferry/pkg/plugin/access"
)

const (
	// probeInterval is how often the hub is asked whether it's there.
	probeInterval = 5 * time.Second
	// probeTimeout is how long it may take to answer.
	probeTimeout = 5 * time.Second
)

// probe knows whether the hub answers. A watch alone doesn't tell: one that hangs looks like one at
// rest, and client-go takes a connection that is closed at once for a watch that has ended.
type probe struct {
	address  string
	client   *http.Client
	clock    clock.PassiveClock
	interval time.Duration
	changed  func()

	mu      sync.Mutex
	trouble *Health
}

func newProbe(config *rest.Config, clock clock.PassiveClock, changed func()) (*probe, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	return &probe{address: base.JoinPath("version").String(), client: client, clock: clock, interval: probeInterval, changed: changed}, nil
}

// run asks until the context ends.
func (p *probe) run(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := p.ask(ctx); ctx.Err() == nil {
			p.note(err)
		}
	}, p.interval)
}

// ask returns an error if there is no answer; a refusal is one.
func (p *probe) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.address, nil)
	if err != nil {
		return err
	}
	response, err := p.client.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

func (p *probe) note(err error) {
	p.mu.Lock()
	differs := (err == nil) != (p.trouble == nil)
	switch {
	case err == nil:
		p.trouble = nil
	case differs:
		p.trouble = &Health{State: Disconnected, Since: p.clock.Now(), Message: access.Explain(err).Error()}
	}
	p.mu.Unlock()
	if differs {
		p.changed()
	}
}

// over returns the health of a feed, given that the hub may not answer.
func (p *probe) over(feed Health) Health {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trouble != nil && feed.State != Forbidden && feed.State != Disconnected {
		return *p.trouble
	}
	return feed
}
