package writer

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// Settings are the hub's for a worker.
type Settings struct {
	// LostTimeout is how long another hub that doesn't renew the Lease is waited for.
	LostTimeout time.Duration
	// TakeOverFrom is the holder that an admin says isn't to be waited for.
	TakeOverFrom string
}

// Standing is what is known of the Lease in a worker.
type Standing struct {
	State State
	// Holder is who holds the Lease, if it's Theirs.
	Holder string
	// Why the Lease isn't held or renewed.
	Why string
	// TookOver: this process took it from a manager that this hub doesn't know: the hub's etcd was
	// put back, or this is a copy that goes on alone.
	TookOver bool
}

// Options of a Lease.
type Options struct {
	Origin v1alpha1.Origin
	// Timeout is for reading and writing the Lease. One that couldn't be read is read again after
	// Retry.
	Timeout, Retry time.Duration
}

// Lease takes and renews the Lease in one worker. One goroutine uses it. A nil one is of a manager
// that uses no Leases.
type Lease struct {
	term    *Term
	worker  client.Client
	options Options

	standing Standing
	other    seen
	due      time.Time // zero: when the worker is connected, or the Term begins
}

// NewLease makes the Lease of a worker; nil if there is no Term.
func NewLease(t *Term, worker client.Client, o Options) *Lease {
	if t == nil {
		return nil
	}
	return &Lease{term: t, worker: worker, options: o, standing: Standing{State: Unknown}}
}

// Standing is what Keep has found out.
func (l *Lease) Standing() Standing {
	if l == nil {
		return Standing{}
	}
	return l.standing
}

// Lost is called while the worker isn't connected: another hub may hold the Lease when it's back.
func (l *Lease) Lost() {
	if l != nil {
		l.standing, l.due = Standing{State: Unknown, TookOver: l.standing.TookOver}, time.Time{}
	}
}

// Keep takes or renews the Lease if that's due. Before the Term has begun, this process is a
// standby, which writes nothing.
func (l *Lease) Keep(ctx context.Context, o Settings) {
	if l == nil {
		return
	}
	begun, refused := l.term.begun()
	now := l.term.clock.Now()
	switch {
	case refused != "":
		l.standing, l.due = Standing{State: Unguarded, Why: refused}, time.Time{}
		return
	case !begun, now.Before(l.due) && (l.standing.State != Theirs || l.standing.Holder != o.TakeOverFrom):
		return
	}
	ctx, cancel := context.WithTimeout(ctx, l.options.Timeout)
	defer cancel()
	next, err := l.keep(ctx, o, now)
	if err != nil {
		next = l.standing // as it was
		next.Why = text.Clean(err.Error(), text.MaxMessage)
	}
	l.standing, l.due = next, now.Add(Interval)
	if next.State == Unknown {
		l.due = now.Add(l.options.Retry)
	}
}

// Due is the time until Keep has something to do.
func (l *Lease) Due() time.Duration {
	if l == nil || l.due.IsZero() {
		return Interval
	}
	return max(l.due.Sub(l.term.clock.Now()), 0)
}

// keep returns an error if nothing is known of the Lease.
func (l *Lease) keep(ctx context.Context, o Settings, now time.Time) (Standing, error) {
	lease := l.lease()
	err := l.worker.Get(ctx, client.ObjectKeyFromObject(lease), lease)
	write := func() error { return l.worker.Update(ctx, lease) }
	switch {
	case apierrors.IsNotFound(err):
		write = func() error { return CreateInSystem(ctx, l.worker, lease) }
	case apierrors.IsForbidden(err):
		return l.refused("the kubeconfig's user may not read", err, now, o), nil
	case err != nil:
		return Standing{}, err
	default:
		l.other.see(lease, now)
	}
	if !l.term.mayTake(lease, l.other, now, o) {
		l.other.holder = ptr.Deref(lease.Spec.HolderIdentity, "")
		return Standing{State: Theirs, Holder: l.other.holder}, nil
	}
	before, held := stampOf(lease)
	stamp := l.term.stamp()
	lease.Spec = specOf(stamp, now)
	metav1.SetMetaDataLabel(&lease.ObjectMeta, v1alpha1.LabelOrigin, string(l.options.Origin))
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, v1alpha1.AnnotationTerm, stamp.String())
	isOwn := before.Holder == stamp.Holder || l.term.knows(before)
	switch err := write(); {
	case err == nil:
		l.other.holder = ""
		return Standing{State: Ours, TookOver: l.standing.TookOver || held && !isOwn}, nil
	case isRefusal(err):
		return l.refused("the worker refuses the write of", err, now, o), nil
	case held && !isRace(err) && isOwn:
		return Standing{State: Ours, TookOver: l.standing.TookOver, Why: text.Clean(err.Error(), text.MaxMessage)}, nil // this hub holds it
	default:
		return Standing{}, err
	}
}

// Release gives the Lease away when the worker is no longer the hub's: whoever registers it next
// waits for nobody.
func (l *Lease) Release(ctx context.Context) error {
	if l.Standing().State != Ours {
		return nil
	}
	l.Lost()
	ctx, cancel := context.WithTimeout(ctx, l.options.Timeout)
	defer cancel()
	lease := l.lease()
	if err := l.worker.Get(ctx, client.ObjectKeyFromObject(lease), lease); err != nil {
		return client.IgnoreNotFound(err)
	}
	if s, _ := stampOf(lease); s.Holder != l.term.stamp().Holder {
		return nil
	}
	lease.Spec.HolderIdentity = nil
	return l.worker.Update(ctx, lease)
}

func (l *Lease) lease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: l.options.Origin.WriterLease()}}
}

// refused is what follows from an answer that this process may not have the Lease. That may be so
// for a moment only, or somebody has deleted it: another hub is waited for as if it were read.
func (l *Lease) refused(why string, err error, now time.Time, o Settings) Standing {
	next := Standing{State: Unguarded, Why: text.Clean(fmt.Sprintf("%s Lease %s/%s (run kubectl jobferry register again): %v", why, v1alpha1.SystemNamespace, l.options.Origin.WriterLease(), err), text.MaxMessage)}
	if l.other.isAwaited(now, o) {
		next.State, next.Holder = Theirs, l.other.holder
	}
	return next
}

func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsNotFound(err)
}
