package process

import (
	"context"
	"fmt"
	"os"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/watch"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"

	"github.com/jobferry/jobferry/pkg/util/wake"
)

// watchPause is the least time from the start of a watch until the Lease is read again, if the
// watch ends by itself.
const watchPause = time.Second

// lock is the Lease of the leader. A standby acquires it as soon as the leader has released it: Get
// watches the Lease meanwhile, and returns when there is something to acquire. client-go would look
// again after 2 to 4.4 s.
type lock struct {
	*resourcelock.LeaseLock
	watches coordinationclient.LeaseInterface
	clock   clock.Clock
	sleep   func(context.Context, time.Duration) error
	term    *term

	// led: this process holds the Lease, or has held it. Then Get doesn't wait: whoever lost the Lease
	// must learn that at once.
	led bool
	// holder and renewed are the Lease's as last seen, and since is when they were first seen.
	holder         string
	renewed, since time.Time
}

var _ resourcelock.Interface = &lock{}

// newLock returns the lock of a program's replicas.
func (f *Flags) newLock(config *rest.Config) (*lock, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("identity of this replica: %w", err)
	}
	config = rest.AddUserAgent(rest.CopyConfig(config), "leader-election")
	watches, err := coordinationclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("leader election: %w", err)
	}
	// one request that hangs doesn't lose the Lease
	config.Timeout = max(f.renewDeadline/2, time.Second)
	requests, err := coordinationclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("leader election: %w", err)
	}
	return &lock{
		LeaseLock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: f.Namespace, Name: f.Name},
			Client:     requests,
			LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
			Labels:     f.LeaseLabels,
		},
		watches: watches.Leases(f.Namespace), clock: clock.RealClock{}, sleep: wake.Sleep, term: &term{clock: clock.RealClock{}},
	}, nil
}

// Get returns the Lease's record when this process may try to acquire the Lease, or has led. Of one
// that has expired, the record has no holder: an update fails if the holder has renewed it after
// all.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	for {
		record, raw, err := l.LeaseLock.Get(ctx)
		if err != nil || l.led || record.HolderIdentity == "" {
			return record, raw, err //nolint:wrapcheck // leader election asks whether it's found
		}
		expires := l.observe(record)
		if !l.clock.Now().Before(expires) {
			record.HolderIdentity = ""
			return record, raw, nil
		}
		if err := l.await(ctx, expires); err != nil {
			return nil, nil, err
		}
	}
}

// observe takes over what is seen of a Lease that another holds, and returns when it expires.
func (l *lock) observe(r *resourcelock.LeaderElectionRecord) time.Time {
	if r.HolderIdentity != l.holder || !r.RenewTime.Time.Equal(l.renewed) {
		l.holder, l.renewed, l.since = r.HolderIdentity, r.RenewTime.Time, l.clock.Now()
	}
	return l.since.Add(time.Duration(r.LeaseDurationSeconds) * time.Second)
}

// await watches the Lease until it's released, deleted, or has expired. It also returns when the
// watch ends by itself, but not within watchPause of its start.
func (l *lock) await(ctx context.Context, expires time.Time) error {
	again := l.clock.Now().Add(watchPause)
	w, err := l.watches.Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, l.LeaseMeta.Name).String(),
	})
	if err != nil {
		return fmt.Errorf("watch the Lease %s: %w", l.Describe(), err)
	}
	defer w.Stop()
	for {
		timer := l.clock.NewTimer(expires.Sub(l.clock.Now()))
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C():
			return nil
		case e, open := <-w.ResultChan():
			timer.Stop()
			lease, is := e.Object.(*coordinationv1.Lease)
			if !open || !is {
				return l.sleep(ctx, again.Sub(l.clock.Now()))
			}
			if e.Type == watch.Deleted {
				return nil
			}
			record := resourcelock.LeaseSpecToLeaderElectionRecord(&lease.Spec)
			if record.HolderIdentity == "" {
				return nil
			}
			expires = l.observe(record)
		}
	}
}

// Create implements resourcelock.Interface.
func (l *lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.hold(r, func(r resourcelock.LeaderElectionRecord) error { return l.LeaseLock.Create(ctx, r) })
}

// Update implements resourcelock.Interface.
func (l *lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.hold(r, func(r resourcelock.LeaderElectionRecord) error { return l.LeaseLock.Update(ctx, r) })
}

// hold writes the record of a Lease that is acquired, renewed or released.
func (l *lock) hold(r resourcelock.LeaderElectionRecord, write func(resourcelock.LeaderElectionRecord) error) error {
	began := l.clock.Now()
	if err := write(l.asOfNow(r)); err != nil {
		return err
	}
	l.led = true
	if r.HolderIdentity != "" {
		l.term.renew(began, time.Duration(r.LeaseDurationSeconds)*time.Second)
	}
	return nil
}

// asOfNow corrects the times of the record with which this process acquires the Lease: they are
// from before Get waited.
func (l *lock) asOfNow(r resourcelock.LeaderElectionRecord) resourcelock.LeaderElectionRecord {
	if !l.led {
		r.AcquireTime = metav1.NewTime(l.clock.Now())
		r.RenewTime = r.AcquireTime
	}
	return r
}
