package hub

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/plugin/access"
)

const (
	// probeInterval is how often the hub is asked whether it's there.
	probeInterval = 5 * time.Second
	// probeTimeout is how long it may take to answer.
	probeTimeout = 5 * time.Second
)

// probe knows whether the hub answers, and which APIs it has. A watch alone doesn't tell: one that
// hangs looks like one at rest, and client-go takes a connection that is closed at once for a watch
// that has ended. Users without rights are refused APIs, too, that the hub doesn't have.
type probe struct {
	client   rest.Interface
	clock    clock.PassiveClock
	interval time.Duration
	changed  func()

	mu sync.Mutex
	// state is Loading until the first answer.
	state Health
	// groups of APIs that the hub has; nil: it doesn't say.
	groups []string
}

func newProbe(config *rest.Config, clock clock.PassiveClock, changed func()) (*probe, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &probe{
		client: client.RESTClient(), clock: clock, interval: probeInterval, changed: changed,
		state: Health{State: Loading, Since: clock.Now()},
	}, nil
}

// run asks until the context ends.
func (p *probe) run(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if groups, err := p.ask(ctx); ctx.Err() == nil {
			p.note(groups, err)
		}
	}, p.interval)
}

// ask returns the groups of APIs, or an error if there is no answer; a refusal is one, without
// groups.
func (p *probe) ask(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var list metav1.APIGroupList
	err := p.client.Get().AbsPath("/apis").Do(ctx).Into(&list)
	if unsent := (*url.Error)(nil); errors.As(err, &unsent) || ctx.Err() != nil {
		return nil, err
	}
	if err != nil {
		return nil, nil
	}
	groups := []string{}
	for i := range list.Groups {
		groups = append(groups, list.Groups[i].Name)
	}
	return groups, nil
}

func (p *probe) note(groups []string, err error) {
	next := Health{State: Live}
	switch {
	case err != nil:
		next = Health{State: Disconnected, Message: access.Explain(err).Error()}
	case groups != nil && !slices.Contains(groups, v1alpha1.GroupVersion.Group):
		next = Health{State: NoJobferry}
	}
	p.mu.Lock()
	differs := p.state.State != next.State || err == nil && !slices.Equal(p.groups, groups)
	if p.state.State != next.State {
		next.Since = p.clock.Now()
		p.state = next
	}
	if err == nil {
		p.groups = groups
	}
	p.mu.Unlock()
	if differs {
		p.changed()
	}
}

// has reports whether the hub has a group of APIs.
func (p *probe) has(group string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.groups, group)
}

// over returns the health of a feed, given what the hub answers.
func (p *probe) over(feed Health) Health {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.state.State == NoJobferry:
		return p.state
	case p.state.State != Live && feed.State != Forbidden && feed.State != Disconnected:
		return p.state
	default:
		return feed
	}
}
