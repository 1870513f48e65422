package writer

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

const (
	origin      = v1alpha1.Origin("origin")
	lostTimeout = 15 * time.Minute
)

// world is hubs of one origin, and a worker.
type world struct {
	*testing.T
	clock  *clocktesting.FakeClock
	worker client.WithWatch
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{t, clocktesting.NewFakeClock(time.Unix(1e9, 0)), fake.NewClientBuilder().Build()}
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// leader is a process that leads a hub.
type leader struct {
	world *world
	term  *Term
	lease *Lease
}

// leads has a new process lead a hub.
func (w *world) leads(hub client.Client) *leader {
	w.Helper()
	term := NewTerm(hub, hub, "system", w.clock)
	w.ok(term.Begin(w.Context()))
	l := &leader{w, term, nil}
	l.connects(w.worker)
	return l
}

func (l *leader) connects(worker client.Client) {
	l.lease = NewLease(l.term, worker, Options{Origin: origin, Timeout: time.Minute, Retry: time.Second})
}

// finds says what the leader finds in the worker now.
func (l *leader) finds(want State, settings ...string) Standing {
	l.world.Helper()
	l.lease.due = time.Time{}
	o := Settings{LostTimeout: lostTimeout}
	for _, holder := range settings {
		o.TakeOverFrom = holder
	}
	l.lease.Keep(l.world.Context(), o)
	got := l.lease.Standing()
	if got.State != want {
		l.world.Errorf("finds %+v, want %s", got, want)
	}
	return got
}

// lives has the leader lead and renew for a while.
func (l *leader) lives(d time.Duration) {
	l.world.Helper()
	for ; d > 0; d -= Interval {
		l.world.clock.Step(Interval)
		l.world.ok(l.term.count(l.world.Context()))
		l.finds(Ours)
	}
}

func newHub() client.WithWatch { return fake.NewClientBuilder().Build() }

// copyOf is a hub started from a backup of another's etcd.
func (w *world) copyOf(hub client.Client) client.Client {
	w.Helper()
	lease := &coordinationv1.Lease{}
	w.ok(hub.Get(w.Context(), client.ObjectKey{Namespace: "system", Name: v1alpha1.HubWriterLease}, lease))
	lease.ResourceVersion = ""
	return fake.NewClientBuilder().WithObjects(lease).Build()
}

func TestTheNextLeaderOfAHubWaitsForNothing(t *testing.T) {
	w, hub := newWorld(t), newHub()
	w.leads(hub).lives(time.Minute)
	w.leads(hub) // one that ends before it has written to the worker
	w.leads(hub).lives(time.Minute)
}

func TestACopyOfAHubWritesNothing(t *testing.T) {
	w, hub := newWorld(t), newHub()
	production := w.leads(hub)
	production.lives(time.Minute)
	backup := w.copyOf(hub)
	production.lives(Interval)
	w.leads(backup).finds(Theirs)
	test := w.leads(backup) // its second leader isn't what production's second leader is
	for range 3 * lostTimeout / time.Minute {
		production.lives(time.Minute)
		test.finds(Theirs)
	}
	next := w.leads(hub)
	next.lives(Interval)
	test.finds(Theirs)

	w.clock.Step(lostTimeout - Interval) // production is silent
	test.finds(Theirs)
	w.clock.Step(Interval)
	test.finds(Ours)
	if got := next.finds(Theirs); got.Holder != test.term.own.Holder {
		t.Errorf("the holder is %q", got.Holder)
	}
}

func TestAnAdminTakesOver(t *testing.T) {
	w, hub := newWorld(t), newHub()
	gone := w.leads(hub)
	gone.lives(time.Minute)
	putBack := w.copyOf(hub)
	gone.lives(time.Minute)
	now := w.leads(putBack)
	holder := now.finds(Theirs).Holder
	now.finds(Theirs, "another")
	now.finds(Ours, holder)
	if !now.finds(Ours).TookOver {
		t.Error("it doesn't know that it took over")
	}
	gone.finds(Theirs)
	if next := w.leads(putBack); next.finds(Ours).TookOver {
		t.Error("the next leader of a hub takes over from nobody else")
	}
}

// A worker that is unregistered is free, for a hub that knows nothing of the one before, too.
func TestALeaseIsReleased(t *testing.T) {
	w, hub := newWorld(t), newHub()
	l := w.leads(hub)
	l.lives(time.Minute)
	w.leads(newHub()).finds(Theirs)
	w.ok(l.lease.Release(t.Context()))
	next := w.leads(newHub())
	next.finds(Ours)
	w.ok(l.lease.Release(t.Context())) // it isn't its own any more
	l.lease.standing.State = Ours
	w.ok(l.lease.Release(t.Context()))
	next.finds(Ours)
	w.leads(newHub()).finds(Theirs)
}

// The hub's etcd is put back while its leader is left alone.
func TestALeaderOutlivesItsHubsPast(t *testing.T) {
	for name, past := range map[string]func(*world, client.Client) client.Client{
		"before its last count": (*world).copyOf,
		"before it led":         func(*world, client.Client) client.Client { return newHub() },
	} {
		t.Run(name, func(t *testing.T) {
			w, hub := newWorld(t), newHub()
			l := w.leads(hub)
			l.lives(time.Minute)
			before := past(w, hub)
			l.lives(time.Minute)
			l.term.live, l.term.hub = before, before
			l.lives(time.Minute)
			w.leads(before).finds(Ours)
		})
	}
}

func TestALeaseThatCantBeWritten(t *testing.T) {
	lease := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	forbidden, broken := apierrors.NewForbidden(lease, "x", errors.New("no")), apierrors.NewInternalError(errors.New("failed calling webhook"))
	failing := func(w *world, get, write error) client.Client {
		return interceptor.NewClient(w.worker, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
				if get != nil {
					return get
				}
				return c.Get(ctx, key, o, options...)
			},
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return write },
			Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return write },
		})
	}
	for name, row := range map[string]struct {
		get, write error
		// first is what the first leader finds, and next what the next one does of a Lease that the
		// first has held.
		first, next State
		why         string
	}{
		"may not be read":    {get: forbidden, first: Unguarded, next: Unguarded, why: "may not read Lease jobferry-system/jobferry-writer-origin"},
		"may not be written": {write: forbidden, first: Unguarded, next: Unguarded, why: "the worker refuses the write of Lease"},
		"can't be read":      {get: broken, first: Unknown, next: Unknown, why: "failed calling webhook"},
		"can't be written":   {write: broken, first: Unknown, next: Ours, why: "failed calling webhook"},
	} {
		t.Run(name, func(t *testing.T) {
			w, hub := newWorld(t), newHub()
			first := w.leads(hub)
			first.connects(failing(w, row.get, row.write))
			if got := first.finds(row.first); !strings.Contains(got.Why, row.why) {
				t.Errorf("says %q, want %q", got.Why, row.why)
			}
			w.leads(hub).lives(Interval)
			next := w.leads(hub)
			next.connects(failing(w, row.get, row.write))
			if got := next.finds(row.next); !strings.Contains(got.Why, row.why) {
				t.Errorf("the next leader says %q, want %q", got.Why, row.why)
			}
		})
	}
}

// A hub whose role doesn't allow the Lease is led all the same, without a guard, until it allows
// it.
func TestATermThatIsForbidden(t *testing.T) {
	w, hub := newWorld(t), newHub()
	lease := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	closed := interceptor.NewClient(hub, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewForbidden(lease, v1alpha1.HubWriterLease, errors.New("no"))
		},
	})
	standby := &leader{w, NewTerm(closed, closed, "system", w.clock), nil}
	standby.connects(w.worker)
	standby.finds(Unknown)
	l := w.leads(closed)
	if got := l.finds(Unguarded); !strings.Contains(got.Why, "upgrade the chart") {
		t.Errorf("says %q", got.Why)
	}
	l.term.live, l.term.hub = hub, hub
	l.lives(time.Minute)
}

// Whoever clears the holder gives the Lease away; a Stamp of another holder says nothing.
func TestStampOf(t *testing.T) {
	lease := func(holder, term string) *coordinationv1.Lease {
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationTerm: term}},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To(holder)},
		}
	}
	term := &Term{before: []Stamp{{"a", 3}}, clock: clocktesting.NewFakeClock(time.Unix(1e9, 0)), own: Stamp{"b", 1}}
	now := term.clock.Now()
	for name, row := range map[string]struct {
		lease *coordinationv1.Lease
		want  bool
	}{
		"known":               {lease("a", "a 3"), true},
		"later than known":    {lease("a", "a 4"), false},
		"no count":            {lease("a", "a"), false},
		"the count of others": {lease("a", "c 1"), false},
		"free":                {lease("", "c 9"), true},
		"its own":             {lease("b", "b 9"), true},
		"another's":           {lease("c", "c 1"), false},
		"no manager's name":   {lease("c; touch x", "c; touch x 1"), true},
		"nor one on lines":    {lease("c\nd", ""), true},
	} {
		if got := term.mayTake(row.lease, seen{since: now}, now, Settings{LostTimeout: time.Minute}); got != row.want {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}
