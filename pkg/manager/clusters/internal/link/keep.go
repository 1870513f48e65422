package link

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/ownwrite"
)

const (
	// refusedInterval is how often a worker that was refused for its identity is probed.
	refusedInterval = time.Minute
	// probeJitter spreads the probes of many workers.
	probeJitter = 0.1
	// backoffJitter spreads the attempts to reach lost workers.
	backoffJitter = 0.3
	// versionInterval is how often the version is read from a worker that stays connected: upgrades
	// of a replicated API server close no connection.
	versionInterval = 5 * time.Minute
)

// Lead points the Link at another target, and reports whether that is another one than before.
// Requests to the former target end. The next Keep dials.
func (l *Link) Lead(next *Target) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.target.equal(next) {
		return false
	}
	if l.target != nil {
		l.target.cancel()
	}
	l.target = next
	return true
}

// Keep does what is due: it changes over to another target, begins a quarantine, and probes. It
// returns false if the target was replaced meanwhile: Keep has to be called again at once.
func (l *Link) Keep(ctx context.Context) (current bool) {
	l.replaceTarget()
	if broken := l.broken.Swap(nil); broken != nil {
		l.beginQuarantine(broken)
	}
	if l.probeRequested.Swap(false) {
		l.probeSoon()
	}
	if !l.now().Before(l.due) {
		l.last = l.connect(ctx)
		l.due = l.now().Add(l.pause())
	}
	return l.dialed.ctx.Err() == nil
}

// Due is the time until Keep has something to do again.
func (l *Link) Due() time.Duration { return max(l.due.Sub(l.now()), 0) }

// Open reports whether the worker answered last, and requests are sent to it.
func (l *Link) Open() bool { return l.last.State == Ready }

// Observation is what was found last. A worker that answers again after it broke a bound isn't
// Ready until the quarantine ends.
func (l *Link) Observation() Observation {
	if now := l.now(); l.Open() && now.Before(l.quarantine.ends) {
		return l.quarantine.observation(now)
	}
	return l.last
}

// Servers counts the servers that the Link has led to: what was found out about one says nothing of
// the next.
func (l *Link) Servers() int { return l.servers }

// probeSoon has the next probe now, but not within RetryDelay of the last.
func (l *Link) probeSoon() {
	soon := l.last.At.Add(l.options.RetryDelay)
	if l.last.Answered && soon.Before(l.due) {
		l.due = soon
	}
}

// replaceTarget changes over to another kubeconfig, if there is one. The informers continue: they
// wait at the gate until the cluster has proved to be the same. New credentials for the same server
// end no quarantine: a worker issues them itself, when its token is renewed.
func (l *Link) replaceTarget() {
	l.mu.Lock()
	next := l.target
	l.mu.Unlock()
	if next == l.dialed {
		return
	}
	if !next.sameServer(l.dialed) {
		l.quarantine = quarantine{}
		l.servers++
		l.broken.Store(nil)
	}
	l.dialed, l.failures, l.due, l.versionRead = next, 0, l.quarantine.opens, time.Time{}
	l.gate.set(false)
	transport, refusal := next.transport(l.options)
	l.refusal = refusal
	l.replace(transport)
}

// pause is the time from one probe to the next.
func (l *Link) pause() time.Duration {
	switch l.last.State {
	case Ready:
		return wait.Jitter(l.options.ProbeInterval, probeJitter)
	case Refused:
		return wait.Jitter(refusedInterval, probeJitter)
	default:
		return wait.Jitter(backoff(l.options.RetryDelay, l.options.MaxBackoff, l.failures), backoffJitter)
	}
}

// backoff doubles from first with each failure after the first one, up to most.
func backoff(first, most time.Duration, failures int) time.Duration {
	for ; failures > 1 && first < most; failures-- {
		first *= 2
	}
	return min(first, most)
}

// connect probes the worker, and opens the gate if it's the right cluster.
func (l *Link) connect(ctx context.Context) Observation {
	began := l.now()
	if l.refusal != nil {
		return Observation{State: Refused, Reason: l.refusal.Reason, Message: l.refusal.Error(), At: began}
	}
	if l.restored != "" {
		return l.outdated(began)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.dialed.ctx, cancel)()

	found, err := l.identify(ctx)
	if err != nil {
		l.failures++
		l.disconnect()
		reason, message := Explain(err)
		return Observation{State: Disconnected, Reason: reason, Message: l.withAddress(reason, message), At: began}
	}
	l.failures = 0
	if reason, message := l.options.Mismatch(found.uid); reason != "" {
		l.disconnect()
		return Observation{State: Refused, Reason: reason, Message: message, At: began, Answered: true}
	}
	if ownwrite.NewerVersion(l.revision, found.revision) {
		l.restored = fmt.Sprintf("its etcd was put back to an earlier state: the resourceVersion was %s, and is %s", l.revision, found.revision)
		l.disconnect()
		return l.outdated(began)
	}
	if found.revision != "" {
		l.revision = found.revision
	}
	if found.version != "" {
		l.versionRead = began
	}
	l.gate.set(true)
	return Observation{State: Ready, Reason: v1alpha1.ReasonConnected, Message: "the API server answers", At: began,
		Answered: true, Version: found.version, ClusterUID: found.uid}
}

// outdated is the observation of a cluster of which all that is known is of a later state than its
// own. A watch would go on as if nothing had happened, and show no change until the cluster has
// caught up. So the Link stays shut: another one begins with a list.
func (l *Link) outdated(at time.Time) Observation {
	return Observation{State: Refused, Reason: v1alpha1.ReasonRestored, Message: l.restored, At: at, Answered: true}
}

// withAddress adds the server's address to a message about the network.
func (l *Link) withAddress(reason, message string) string {
	t := l.transport.Load()
	if t == nil || reason != v1alpha1.ReasonUnreachable && reason != v1alpha1.ReasonUntrusted {
		return message
	}
	return t.server.Scheme + "://" + t.server.Host + ": " + message
}

// identify probes. A worker that was connected gets a second try over new TCP connections: one that
// died in silence, behind a load balancer for example, isn't the loss of the worker.
func (l *Link) identify(ctx context.Context) (identity, error) {
	withVersion := l.now().Sub(l.versionRead) >= versionInterval
	found, err := l.probe(ctx, withVersion)
	if broken := (*BoundError)(nil); err == nil || !l.gate.isOpen() || errors.As(err, &broken) {
		return found, err
	}
	if apierrors.IsTooManyRequests(err) {
		return identity{uid: l.last.ClusterUID}, nil
	}
	l.disconnect()
	if err := l.sleep(ctx, l.options.RetryDelay); err != nil {
		return identity{}, err
	}
	return l.probe(ctx, true)
}

func (l *Link) sleep(ctx context.Context, d time.Duration) error {
	timer := l.options.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
