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
}

func newStandby(t *testing.T, lease *coordinationv1.Lease) *standby {
	t.Helper()
	s := &standby{
		hub: fake.NewClientset(lease), clock: clocktesting.NewFakeClock(noon), events: watch.NewFake(),
		got: make(chan *resourcelock.LeaderElectionRecord, 1),
	}
	s.hub.PrependWatchReactor("leases", clienttesting.DefaultWatchReactor(s.events, nil))
	s.lock = &lock{
		LeaseLock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: "system", Name: "ferry"}, Client: s.hub.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: "me"},
		},
		watches: s.hub.CoordinationV1().Leases("system"), clock: s.clock,
	}
	return s
}

// waits has the standby wait, and returns when it does.
func (s *standby) waits(t *testing.T) {
	t.Helper()
	go func() {
		record, _, err := s.Get(t.Context())
		if err != nil {
			t.Error(err)
		}
		s.got <- record
	}()
	s.seen(leaseOf("other", noon))
}

// seen has the standby see an event, and returns when it has.
func (s *standby) seen(lease *coordinationv1.Lease) {
	s.events.Modify(lease)
	s.events.Modify(lease)
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

// A leader that died doesn't release its Lease: 15 s after the last renewal that was seen, it has expired.
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
	s.store(t, leaseOf("", noon))
	s.events.Stop()
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
