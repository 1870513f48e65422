package clusters

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

const (
	// refusedInterval is how often a worker that was refused for its identity is probed.
	refusedInterval = time.Minute
	// versionInterval is how often the version is read from a worker that stays connected: upgrades
	// of a replicated API server close no connection.
	versionInterval = 5 * time.Minute
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

// connect probes the worker, and opens the gate if it's the right cluster.
func (s *supervisor) connect(ctx context.Context) observation {
	began := s.now()
	if s.refusal != nil {
		return observation{state: Refused, reason: s.refusal.Reason, message: s.refusal.Error(), at: began}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.dialed.ctx, cancel)()

	found, err := s.identify(ctx)
	if err != nil {
		s.failures++
		s.connection.disconnect()
		reason, message := explain(err)
		return observation{state: Disconnected, reason: reason, message: s.withAddress(reason, message), at: began}
	}
	s.failures = 0
	if reason, message := s.mismatch(found); reason != "" {
		s.connection.disconnect()
		return observation{state: Refused, reason: reason, message: message, at: began, answered: true}
	}
	if found.version != "" {
		s.versionRead = began
	}
	s.connection.gate.set(true)
	return observation{state: Ready, reason: v1alpha1.ReasonConnected, message: "the API server answers", at: began,
		answered: true, version: found.version, clusterUID: found.uid}
}

// withAddress adds the server's address to a message about the network.
func (s *supervisor) withAddress(reason, message string) string {
	t := s.connection.transport.Load()
	if t == nil || reason != v1alpha1.ReasonUnreachable && reason != v1alpha1.ReasonUntrusted {
		return message
	}
	return t.server.Scheme + "://" + t.server.Host + ": " + message
}

// identify probes. A worker that was connected gets a second try over new TCP connections: one that
// died in silence, behind a load balancer for example, isn't the loss of the worker.
func (s *supervisor) identify(ctx context.Context) (identity, error) {
	withVersion := s.now().Sub(s.versionRead) >= versionInterval
	found, err := s.prober.probe(ctx, withVersion)
	if broken := (*BoundError)(nil); err == nil || !s.connection.gate.isOpen() || errors.As(err, &broken) {
		return found, err
	}
	if apierrors.IsTooManyRequests(err) {
		return identity{uid: s.last.clusterUID}, nil
	}
	s.connection.disconnect()
	if err := s.sleep(ctx, s.options.RetryDelay); err != nil {
		return identity{}, err
	}
	return s.prober.probe(ctx, true)
}

func (s *supervisor) sleep(ctx context.Context, d time.Duration) error {
	timer := s.options.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// mismatch says why the cluster that answers isn't to be used; an empty reason if it is.
func (s *supervisor) mismatch(found identity) (reason, message string) {
	s.mu.Lock()
	known := s.current.ClusterUID
	s.mu.Unlock()
	switch {
	case found.uid == s.options.HubUID:
		return v1alpha1.ReasonIsHub, "the kubeconfig leads to the hub itself: a worker must be another cluster"
	case known != "" && found.uid != known:
		return v1alpha1.ReasonClusterChanged, fmt.Sprintf("the kubeconfig leads to cluster %s, before it was %s: "+
			"register the other one under another name; if the cluster was built anew, delete the Secret, "+
			"with spec.removalPolicy Orphan, and create it again", found.uid, known)
	}
	if other := s.identities.record(found.uid, s.name); other != s.name {
		return v1alpha1.ReasonDuplicate, fmt.Sprintf("the kubeconfig leads to the cluster that is registered as %q: "+
			"delete one of the two Secrets", other)
	}
	return "", ""
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
