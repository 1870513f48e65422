package process

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// leaseOf is a Lease of 15 s; without a holder, it's released.
func leaseOf(holder string, renewed time.Time) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "ferry"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To(holder), LeaseDurationSeconds: ptr.To[int32](15), RenewTime: ptr.To(metav1.NewMicroTime(renewed)),
		},
	}
}

// standby is a replica that waits for a Lease.
type standby struct {
	*lock
	hub    *fake.Clientset
	clock  *clocktesting.FakeClock
	events *watch.FakeWatcher // sending blocks until the last event has been seen
	got    chan *resourcelock.LeaderElectionRecord
	pauses chan time.Duration // has how long a pause is that has begun
	goOn   chan struct{}      // ends it
}

func newStandby(t *testing.T, lease *coordinationv1.Lease) *standby {
	t.Helper()
	s := &standby{
		hub: fake.NewClientset(lease), clock: clocktesting.NewFakeClock(noon), events: watch.NewFake(),
		got: make(chan *resourcelock.LeaderElectionRecord, 1), pauses: make(chan time.Duration), goOn: make(chan struct{}),
	}
	s.hub.PrependWatchReactor("leases", clienttesting.DefaultWatchReactor(s.events, nil))
	s.lock = &lock{
		LeaseLock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: "system", Name: "ferry"}, Client: s.hub.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: "me"},
		},
		watches: s.hub.CoordinationV1().Leases("system"), clock: s.clock, term: &term{clock: s.clock},
		sleep: func(_ context.Context, d time.Duration) error { s.pauses <- d; <-s.goOn; return nil },
	}
	return s
}

// waits has the standby wait, and returns when it does.
func (s *standby) waits(t *testing.T) {
	t.Helper()
	go s.get(t)
	s.seen(leaseOf("other", noon))
}

func (s *standby) get(t *testing.T) {
	record, _, err := s.Get(t.Context())
	if err != nil {
		t.Error(err)
	}
	s.got <- record
}

// seen has the standby see an event, and returns when it has.
func (s *standby) seen(lease *coordinationv1.Lease) {
	s.events.Modify(lease)
	s.events.Modify(lease)
}

// pause returns when the standby makes a pause, and how long it is.
func (s *standby) pause(t *testing.T) time.Duration {
	t.Helper()
	select {
	case d := <-s.pauses:
		return d
	case <-time.After(20 * time.Second):
		t.Fatal("the standby makes no pause")
		return 0
	}
}

func (s *standby) store(t *testing.T, lease *coordinationv1.Lease) {
	t.Helper()
	if _, err := s.hub.CoordinationV1().Leases("system").Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (s *standby) stillWaits(t *testing.T) {
	t.Helper()
	select {
	case record := <-s.got:
		t.Fatalf("the standby waits no more: %+v", record)
	default:
	}
}

func (s *standby) mayAcquire(t *testing.T) {
	t.Helper()
	if record := <-s.got; record == nil || record.HolderIdentity != "" {
		t.Fatalf("got %+v, want a record without a holder", record)
	}
}

func TestAStandbyTakesOverWhatIsReleased(t *testing.T) {
	s := newStandby(t, leaseOf("other", noon))
	s.waits(t)
	s.clock.Step(10 * time.Second)
	s.stillWaits(t)
	s.store(t, leaseOf("", noon))
	s.events.Modify(leaseOf("", noon))
	s.mayAcquire(t)
	record := resourcelock.LeaderElectionRecord{HolderIdentity: "me", LeaseDurationSeconds: 15, RenewTime: metav1.NewTime(noon)}
	if err := s.Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	if got, _, err := s.Get(t.Context()); err != nil || got.HolderIdentity != "me" || !got.RenewTime.Time.Equal(noon.Add(10*time.Second)) {
		t.Errorf("acquired %+v (%v), want the time at which it was", got, err)
	}
}

// A leader that died doesn't release its Lease: 15 s after the last renewal that was seen, it has
// expired.
func TestAStandbyTakesOverWhatHasExpired(t *testing.T) {
	s := newStandby(t, leaseOf("other", noon))
	s.waits(t)
	s.clock.Step(14 * time.Second)
	s.store(t, leaseOf("other", noon.Add(14*time.Second)))
	s.seen(leaseOf("other", noon.Add(14*time.Second)))
	s.clock.Step(14 * time.Second)
	s.seen(leaseOf("other", noon.Add(14*time.Second)))
	s.stillWaits(t)
	for len(s.got) == 0 { // it may be about to set its timer
		s.clock.Step(time.Second)
		runtime.Gosched()
	}
	s.mayAcquire(t)
}

// A watch may end at any time.
func TestAWatchOfTheLeaseEnds(t *testing.T) {
	s := newStandby(t, leaseOf("other", noon))
	s.waits(t)
	s.clock.Step(2 * time.Second)
	s.store(t, leaseOf("", noon))
	s.events.Stop()
	if d := s.pause(t); d > 0 {
		t.Errorf("the Lease is read %v after a watch of two seconds", d)
	}
	close(s.goOn)
	s.mayAcquire(t)
}

// Where each watch ends at once, the Lease is read once a second.
func TestWatchesOfTheLeaseThatEndAtOnce(t *testing.T) {
	s := newStandby(t, leaseOf("other", noon))
	s.events.Stop()
	go s.get(t)
	for range 3 {
		if d := s.pause(t); d != watchPause {
			t.Fatalf("the Lease is read again after %v", d)
		}
		s.goOn <- struct{}{}
	}
	s.pause(t)
	s.store(t, leaseOf("", noon))
	close(s.goOn)
	s.mayAcquire(t)
}

// Whoever has led doesn't wait: it must learn at once that it has lost the Lease.
func TestALeaderDoesntWait(t *testing.T) {
	s := newStandby(t, leaseOf("other", noon))
	s.led = true
	if record, _, err := s.Get(t.Context()); err != nil || record.HolderIdentity != "other" {
		t.Errorf("got %+v (%v)", record, err)
	}
}

func TestAStandbyEnds(t *testing.T) {
	s := newStandby(t, leaseOf("other", noon))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Get(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
