package worker

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

// restoreRetry is the time between two tries to create a Lease, and between two lists of all Jobs:
// any user that may create Jobs can make origins up, without a Lease.
const restoreRetry = 10 * time.Second

// followMissing forgets the origins that have neither a Lease nor Jobs here, and creates the Leases
// of the others that somebody has deleted. A hub may renew its Lease, but not create it. A Lease
// that was never observed isn't created: any user that may create Jobs can make an origin up. It
// returns when to try again; zero: nothing is to be tried.
func (f *fencer) followMissing(ctx context.Context) time.Duration {
	f.mu.Lock()
	missing := f.tracker.Missing()
	f.mu.Unlock()
	if len(missing) == 0 {
		return 0
	}
	now := f.clock.Now()
	if wait := f.asked.Add(restoreRetry).Sub(now); wait > 0 {
		return wait
	}
	f.asked = now
	origins, err := f.origins(ctx)
	if err != nil {
		f.log.Error(err, "The Jobs of the hubs without a Lease aren't known")
		return restoreRetry
	}
	var retry time.Duration
	for _, origin := range missing {
		switch {
		case !origins.Has(origin):
			f.forget(origin)
		case wake.IsClosed(f.elected) && f.observed(origin) && !f.restore(ctx, origin):
			retry = restoreRetry
		}
	}
	return retry
}

func (f *fencer) observed(origin v1alpha1.Origin) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tracker.Observed(origin)
}

// countMarked counts a Job that is marked. An origin that may be made up has no series of its own.
func (f *fencer) countMarked(origin v1alpha1.Origin) {
	if !f.observed(origin) {
		origin = ""
	}
	f.metrics.marked.WithLabelValues(string(origin)).Inc()
}

// forget drops an origin, if there is still no Lease of it.
func (f *fencer) forget(origin v1alpha1.Origin) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tracker.IsMissing(origin) {
		f.tracker.Forget(origin)
		delete(f.warned, origin)
	}
}

// restore creates the Lease of an origin as the registration does. The fence stays as it is until
// the hub renews the Lease.
func (f *fencer) restore(ctx context.Context, origin v1alpha1.Origin) bool {
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	created, err := f.leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Name: origin.FenceLease(), Labels: map[string]string{v1alpha1.LabelOrigin: string(origin)},
	}}, metav1.CreateOptions{})
	switch {
	case err == nil:
		f.log.Info("The hub's Lease was deleted, and is created again", "origin", origin)
		f.observe(created)
	case !apierrors.IsAlreadyExists(err):
		f.log.Error(err, "The hub's Lease was deleted, and can't be created", "origin", origin)
		return false
	}
	return true
}
