package clusters

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// versionInterval is how often the version is read from a worker that stays connected: upgrades
// of a replicated API server close no connection.
const versionInterval = 5 * time.Minute

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
