package clusters

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

const (
	// refusedInterval is how often a worker that was refused for its identity is probed.
	refusedInterval = time.Minute
	// probeJitter spreads the probes of many workers.
	probeJitter = 0.1
	// backoffJitter spreads the attempts to reach lost workers.
	backoffJitter = 0.3
	// watchFailureLimit is for how many probe intervals the watch of the mirrors may fail while
	// probes succeed. What is known of them is old by then.
	watchFailureLimit = 3
)

// supervisor is the one goroutine that decides over a worker's connection: it probes, opens and
// shuts the gate, and starts the informers.
//
//	timer ────────────────────────────────────────────┐
//	wake (settings, kubeconfig, an informer) ─────────┼─> sync: replaceTarget, connect, runInformers,
//	requestProbe (a request failed or takes long) ────┘         readiness ──> Worker.observe
type supervisor struct {
	*Worker
	identities *identities

	// dialed is the target that the connection leads to.
	dialed *target
	// refusal of that target; nil if there's a transport to try.
	refusal *KubeconfigError
	// last is what the last attempt to connect found, and due when the next one is.
	last        observation
	due         time.Time
	failures    int
	versionRead time.Time
	quarantine  quarantine
	listing     listing
}

// run supervises the connection until the context ends, and then closes it.
func (s *supervisor) run(ctx context.Context) {
	defer close(s.done)
	defer s.close()
	timer := s.options.Clock.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.woken:
		case <-timer.C():
		}
		pause := s.sync(ctx)
		if !timer.Stop() {
			select {
			case <-timer.C():
			default:
			}
		}
		timer.Reset(pause)
	}
}

// sync does what is due, and returns the time until something is again.
func (s *supervisor) sync(ctx context.Context) time.Duration {
	s.replaceTarget()
	if broken := s.connection.broken.Swap(nil); broken != nil {
		s.beginQuarantine(broken)
	}
	if s.probeRequested.Swap(false) {
		s.probeSoon()
	}
	if !s.now().Before(s.due) {
		s.last = s.connect(ctx)
		s.due = s.now().Add(s.pause())
	}
	if s.dialed.ctx.Err() != nil {
		return 0 // the target was replaced meanwhile
	}
	if ctx.Err() == nil {
		s.runInformers(ctx)
		s.lookAtListing()
		s.observe(s.readiness(), s.capacityState())
	}
	return max(s.due.Sub(s.now()), 0)
}

// probeSoon has the next probe now, but not within RetryDelay of the last.
func (s *supervisor) probeSoon() {
	soon := s.last.at.Add(s.options.RetryDelay)
	if s.last.answered && soon.Before(s.due) {
		s.due = soon
	}
}

// replaceTarget changes over to another kubeconfig, if there is one. The informers continue: they
// wait at the gate until the cluster has proved to be the same. New credentials for the same server
// end no quarantine: a worker issues them itself, when its token is renewed.
func (s *supervisor) replaceTarget() {
	s.mu.Lock()
	next := s.target
	s.mu.Unlock()
	if next == s.dialed {
		return
	}
	if !next.sameServer(s.dialed) {
		s.quarantine, s.listing = quarantine{}, listing{}
		s.connection.broken.Store(nil)
	}
	s.dialed, s.failures, s.due, s.versionRead = next, 0, s.quarantine.opens, time.Time{}
	s.connection.gate.set(false)
	transport, refusal := next.transport(s.options)
	s.refusal = refusal
	s.connection.replace(transport)
}

// pause is the time from one probe to the next.
func (s *supervisor) pause() time.Duration {
	switch s.last.state {
	case Ready:
		return wait.Jitter(s.options.ProbeInterval, probeJitter)
	case Refused:
		return wait.Jitter(refusedInterval, probeJitter)
	default:
		return wait.Jitter(backoff(s.options.RetryDelay, s.options.MaxBackoff, s.failures), backoffJitter)
	}
}

// backoff doubles from first with each failure after the first one, up to most.
func backoff(first, most time.Duration, failures int) time.Duration {
	for ; failures > 1 && first < most; failures-- {
		first *= 2
	}
	return min(first, most)
}

// runInformers starts and stops the informers as the settings say, once the worker has been Ready.
func (s *supervisor) runInformers(ctx context.Context) {
	if s.last.state == Ready && !s.mirrors.started() {
		s.mirrors.start(ctx)
	}
	switch wanted := s.View().Spec.Capacity != v1alpha1.CapacityUnlimited; {
	case !wanted:
		s.capacity.stop()
	case s.last.state == Ready:
		s.capacity.start(ctx)
	}
	switch grows := s.View().Spec.Capacity == v1alpha1.CapacityAutoscaled; {
	case !grows:
		s.autoscaler.stop()
	case s.capacity.known:
		s.autoscaler.start(ctx)
	}
	if s.last.state == Ready {
		s.capacity.volumes.start(ctx)
	}
}

// capacityState is what is known of the worker's capacity.
func (s *supervisor) capacityState() CapacityState {
	state, view := s.capacity.state(), s.View()
	if why := s.autoscaler.missing(&view.Spec); why != "" && state.Known {
		state.Unchecked = strings.TrimPrefix(state.Unchecked+"; "+why, "; ")
	}
	return state
}

// readiness takes the informers into account: a worker that answers is Ready once its mirrors are
// known, and for as long as their changes are. A loss by that begins now, not with the first
// failure: until now the fence's Lease has been renewed.
func (s *supervisor) readiness() observation {
	v := s.last
	if v.state != Ready {
		return v
	}
	now, failure := s.now(), s.mirrors.lastFailure()
	if now.Before(s.quarantine.ends) {
		return s.quarantine.observation(now)
	}
	stale := failure != nil && now.Sub(failure.since) >= watchFailureLimit*s.options.ProbeInterval
	switch {
	case failure != nil && lacksPermission(failure.err):
		v.state, v.at = Disconnected, now
		v.reason, v.message = explain(failure.err)
	case s.listing.overdue != nil:
		v.state, v.at = Disconnected, now
		v.reason, v.message = explain(s.listing.overdue)
	case s.mirrors.synced() && !stale:
	case failure != nil:
		v.state, v.at = Disconnected, now
		v.reason, v.message = explain(failure.err)
		v.message = "Jobs can't be watched: " + v.message
	default:
		v.state, v.reason, v.message = Connecting, v1alpha1.ReasonConnecting, "its Jobs are being listed"
	}
	return v
}

// close ends the informers and the connection.
func (s *supervisor) close() {
	s.connection.disconnect()
	s.autoscaler.stop()
	s.mirrors.stop()
	s.capacity.stop()
	s.capacity.volumes.stop()
	s.connection.replace(nil)
	s.identities.forget(s.name)
}
