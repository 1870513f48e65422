package clusters

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

const (
	// refusedInterval is how often a worker that was refused for what it said of itself is asked
	// again.
	refusedInterval = time.Minute
	// versionInterval is how often the version is read from a worker that stays in touch: upgrades
	// of a replicated API server cut no connection.
	versionInterval = 5 * time.Minute
	// probeJitter spreads the probes of many workers.
	probeJitter = 0.1
	// backoffJitter spreads the attempts to reach lost workers.
	backoffJitter = 0.3
)

// owner is the one goroutine that decides over a worker's connection: it probes, opens and shuts
// the gate, and starts the caches.
//
//	        ┌── kick (settings, kubeconfig, a cache) ──┐
//	timer ──┼── suspect (a request failed or is slow) ─┼─> turn: adopt, contact, tend, judge
//	        └──────────────────────────────────────────┘             └─> take
type owner struct {
	*Worker
	claims *claims

	adopted *aim
	// refusal of the adopted aim; nil if there's a route to try.
	refusal *KubeconfigError
	// last is the verdict of the last contact, and due when the next one is.
	last        verdict
	due         time.Time
	failures    int
	versionRead time.Time
}

// run owns the connection until the context ends, and leaves nothing behind.
func (o *owner) run(ctx context.Context) {
	defer close(o.done)
	defer o.close()
	timer := o.options.Clock.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.kicked:
		case <-timer.C():
		}
		pause := o.turn(ctx)
		if !timer.Stop() {
			select {
			case <-timer.C():
			default:
			}
		}
		timer.Reset(pause)
	}
}

// turn does what is due, and answers with the time until something is again.
func (o *owner) turn(ctx context.Context) time.Duration {
	o.adopt()
	if o.suspected.Swap(false) {
		o.hasten()
	}
	if !o.now().Before(o.due) {
		o.last = o.contact(ctx)
		o.due = o.now().Add(o.pause())
	}
	if o.adopted.ctx.Err() != nil {
		return 0 // there's another kubeconfig: what this one led to is no matter
	}
	if ctx.Err() == nil {
		o.tend(ctx)
		o.take(o.judge(), o.room.state())
	}
	return max(o.due.Sub(o.now()), 0)
}

// hasten has the next probe now, but not within RetryDelay of the last.
func (o *owner) hasten() {
	soon := o.last.at.Add(o.options.RetryDelay)
	if o.last.answered && soon.Before(o.due) {
		o.due = soon
	}
}

// adopt changes over to another kubeconfig, if there is one. The caches stay: until the cluster has
// shown to be the same, the gate keeps them waiting.
func (o *owner) adopt() {
	o.mu.Lock()
	next := o.aim
	o.mu.Unlock()
	if next == o.adopted {
		return
	}
	o.adopted, o.failures, o.due, o.versionRead = next, 0, time.Time{}, time.Time{}
	o.wire.gate.set(false)
	r, refusal := routeTo(next, o.options)
	o.refusal = refusal
	o.wire.use(r)
}

func routeTo(a *aim, options Options) (*route, *KubeconfigError) {
	config, refusal := a.parse()
	if refusal != nil {
		return nil, refusal
	}
	r, err := newRoute(config, options)
	if err != nil {
		return nil, invalid("", "%v", err)
	}
	return r, nil
}

// contact asks the worker who it is, and sets the gate accordingly.
func (o *owner) contact(ctx context.Context) verdict {
	began := o.now()
	if o.refusal != nil {
		return verdict{state: Refused, reason: o.refusal.Reason, message: o.refusal.Error(), at: began}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(o.adopted.ctx, cancel)()

	said, err := o.ask(ctx)
	if err != nil {
		o.failures++
		o.shut()
		reason, message := explain(err)
		return verdict{state: Disconnected, reason: reason, message: o.located(reason, message), at: began}
	}
	o.failures = 0
	if reason, message := o.recognize(said); reason != "" {
		o.shut()
		return verdict{state: Refused, reason: reason, message: message, at: began, answered: true}
	}
	if said.version != "" {
		o.versionRead = began
	}
	o.wire.gate.set(true)
	return verdict{state: Ready, reason: v1alpha1.ReasonConnected, message: "the API server answers", at: began,
		answered: true, version: said.version, clusterUID: said.uid}
}

// located adds to a message about the way to the worker where that leads.
func (o *owner) located(reason, message string) string {
	r := o.wire.current.Load()
	if r == nil || reason != v1alpha1.ReasonUnreachable && reason != v1alpha1.ReasonUntrusted {
		return message
	}
	return r.base.Scheme + "://" + r.base.Host + ": " + message
}

// ask probes. A worker that was in touch gets a second chance over connections that are made anew:
// one that died in silence, behind a load balancer for example, isn't the loss of the worker.
func (o *owner) ask(ctx context.Context) (identity, error) {
	withVersion := o.now().Sub(o.versionRead) >= versionInterval
	said, err := o.prober.ask(ctx, withVersion)
	if err == nil || !o.wire.gate.isOpen() {
		return said, err
	}
	if apierrors.IsTooManyRequests(err) {
		return identity{uid: o.last.clusterUID}, nil
	}
	o.shut()
	if err := o.sleep(ctx, o.options.RetryDelay); err != nil {
		return identity{}, err
	}
	return o.prober.ask(ctx, true)
}

func (o *owner) sleep(ctx context.Context, d time.Duration) error {
	timer := o.options.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (o *owner) shut() {
	o.wire.gate.set(false)
	o.wire.drop()
}

// recognize says why the cluster that answers isn't to be used; an empty reason if it is.
func (o *owner) recognize(said identity) (reason, message string) {
	o.mu.Lock()
	known := o.health.ClusterUID
	o.mu.Unlock()
	switch {
	case said.uid == o.options.HubUID:
		return v1alpha1.ReasonIsHub, "the kubeconfig leads to the hub itself: a worker must be another cluster"
	case known != "" && said.uid != known:
		return v1alpha1.ReasonClusterChanged, fmt.Sprintf("the kubeconfig leads to cluster %s, before it was %s: "+
			"register the other one under another name; if the cluster was built anew, delete the Secret, "+
			"with spec.removalPolicy Orphan, and create it again", said.uid, known)
	}
	if owner := o.claims.take(said.uid, o.name); owner != o.name {
		return v1alpha1.ReasonDuplicate, fmt.Sprintf("the kubeconfig leads to the cluster that is registered as %q: "+
			"delete one of the two Secrets", owner)
	}
	return "", ""
}

// pause is the time from one contact to the next.
func (o *owner) pause() time.Duration {
	switch o.last.state {
	case Ready:
		return wait.Jitter(o.options.ProbeInterval, probeJitter)
	case Refused:
		return wait.Jitter(refusedInterval, probeJitter)
	default:
		return wait.Jitter(backoff(o.options.RetryDelay, o.options.MaxBackoff, o.failures), backoffJitter)
	}
}

// backoff doubles from first with each failure after the first one, up to most.
func backoff(first, most time.Duration, failures int) time.Duration {
	for ; failures > 1 && first < most; failures-- {
		first *= 2
	}
	return min(first, most)
}

// tend starts and stops the caches as the settings say. They are first started when the worker has
// been recognized.
func (o *owner) tend(ctx context.Context) {
	if o.last.state == Ready && !o.mirrors.started() {
		o.mirrors.start(ctx)
	}
	switch wanted := o.View().Spec.Capacity != v1alpha1.CapacityUnlimited; {
	case !wanted:
		o.room.off()
	case o.last.state == Ready:
		o.room.on(ctx)
	}
}

// watchPatience is how many probe intervals the watch of the mirrors may fail while probes succeed.
// What is known of them is old by then.
const watchPatience = 3

// judge takes the caches into account: a worker that answers is Ready once its mirrors are known,
// and for as long as their changes are. A loss by that begins now, not with the first failure:
// until now the fence's Lease has been renewed.
func (o *owner) judge() verdict {
	v := o.last
	if v.state != Ready {
		return v
	}
	now, failure := o.now(), o.mirrors.lastFailure()
	stale := failure != nil && now.Sub(failure.since) >= watchPatience*o.options.ProbeInterval
	switch {
	case failure != nil && lacksPermission(failure.err):
		v.state, v.at = Disconnected, now
		v.reason, v.message = explain(failure.err)
	case o.mirrors.synced() && !stale:
	case failure != nil:
		v.state, v.at = Disconnected, now
		v.reason, v.message = explain(failure.err)
		v.message = "Jobs can't be watched: " + v.message
	default:
		v.state, v.reason, v.message = Connecting, v1alpha1.ReasonConnecting, "its Jobs are being listed"
	}
	return v
}

// close ends all that the connection consists of.
func (o *owner) close() {
	o.shut()
	o.mirrors.stop()
	o.room.off()
	o.wire.use(nil)
	o.claims.release(o.name)
}
