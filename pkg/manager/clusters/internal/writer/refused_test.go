package writer

import (
	"context"
	"errors"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// A copy of a hub has seen that the hub's own manager renews the Lease. When it may no more have it
// for a while, as when the worker's API server has just started, or somebody has deleted the Lease,
// it still writes nothing for as long as an owner that is silent is waited for.
func TestACopyThatIsRefusedWritesNothing(t *testing.T) {
	resource := coordinationv1.Resource("leases")
	forbidden := apierrors.NewForbidden(resource, "x", errors.New(`RBAC: clusterrole.rbac.authorization.k8s.io "jobferry" not found`))
	for name, get := range map[string]error{
		"it may not be read":                forbidden,
		"it's gone, and may not be created": apierrors.NewNotFound(resource, "x"),
	} {
		t.Run(name, func(t *testing.T) {
			w, hub := newWorld(t), newHub()
			production := w.leads(hub)
			production.lives(Interval)
			backup := w.copyOf(hub)
			production.lives(Interval)
			test, refuses := w.leads(backup), false
			test.connects(refusing(w.worker, get, forbidden, &refuses))
			holder := test.finds(Theirs).Holder
			w.clock.Step(lostTimeout - Interval)
			refuses = true
			if got := test.finds(Theirs); got.Holder != holder || got.Why == "" {
				t.Errorf("finds %+v", got)
			}
			test.lease.Lost() // the worker wasn't connected for a moment
			test.finds(Theirs)
			test.finds(Unguarded, holder) // an admin says so
			w.clock.Step(Interval)
			test.finds(Unguarded)
		})
	}
}

// refusing is a worker that gives no access to Leases while it refuses.
func refusing(worker client.WithWatch, get, write error, refuses *bool) client.Client {
	return interceptor.NewClient(worker, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if *refuses {
				return get
			}
			return c.Get(ctx, key, o, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if *refuses {
				return write
			}
			return c.Create(ctx, o, options...)
		},
	})
}

// An admin has let a hub take over, and doesn't say so any more: the other is forgotten.
func TestATakenLeaseThatIsRefused(t *testing.T) {
	w, refuses := newWorld(t), false
	w.leads(newHub()).lives(Interval)
	next := w.leads(newHub())
	next.connects(refusing(w.worker, apierrors.NewForbidden(coordinationv1.Resource("leases"), "x", errors.New("no")), nil, &refuses))
	next.finds(Ours, next.finds(Theirs).Holder)
	refuses = true
	next.finds(Unguarded)
}

// Whoever has given the Lease away is waited for no more, also if it may not be written then.
func TestAReleasedLeaseThatCantBeWritten(t *testing.T) {
	w, hub := newWorld(t), newHub()
	l := w.leads(hub)
	l.lives(Interval)
	next := w.leads(newHub())
	next.finds(Theirs)
	w.ok(l.lease.Release(t.Context()))
	next.lease.worker = interceptor.NewClient(w.worker, interceptor.Funcs{
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
			return apierrors.NewForbidden(coordinationv1.Resource("leases"), v1alpha1.HubWriterLease, errors.New("no"))
		},
	})
	next.finds(Unguarded)
}
