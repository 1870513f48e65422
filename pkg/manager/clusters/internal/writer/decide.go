package writer

import (
	"fmt"
	"math"
	"regexp"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// State says whether this process may write to a worker.
type State string

const (
	// Unasked: no Leases are used. Everything may be written.
	Unasked State = ""
	// Unknown: the worker's Lease hasn't been read yet, or not since the worker was lost. Nothing
	// is written.
	Unknown State = "Unknown"
	// Ours: this process holds the Lease.
	Ours State = "Ours"
	// Unguarded: there is no Lease that this process may write. It writes to the worker all the
	// same.
	Unguarded State = "Unguarded"
	// Theirs: another hub holds the Lease. Nothing is written.
	Theirs State = "Theirs"
)

// MayWrite reports whether this process may write to the worker.
func (s State) MayWrite() bool { return s != Unknown && s != Theirs }

// holders are the names that managers have. An admin copies them into a shell, and the worker can
// write any text.
var holders = regexp.MustCompile(`^[A-Za-z0-9][-A-Za-z0-9_.]{0,252}$`)

func isHolder(name string) bool { return holders.MatchString(name) }

// stampOf is who renewed a worker's Lease last. One without a holder is free, and so is one whose
// holder is no manager.
func stampOf(lease *coordinationv1.Lease) (s Stamp, held bool) {
	holder := ptr.Deref(lease.Spec.HolderIdentity, "")
	if s, is := readStamp(lease.Annotations[v1alpha1.AnnotationTerm]); is && s.Holder == holder && isHolder(holder) {
		return s, true
	}
	return Stamp{holder, math.MaxInt64}, isHolder(holder)
}

// seen is what was last seen of another hub's renewals, and since when.
type seen struct {
	renewal string
	since   time.Time
	// holder is another hub that this process had to wait for; empty: none.
	holder string
}

// see takes in the Lease as it was read.
func (s *seen) see(lease *coordinationv1.Lease, now time.Time) {
	if renewal := renewalOf(lease); renewal != s.renewal {
		*s = seen{renewal: renewal, since: now}
	}
}

// isAwaited reports whether another hub holds the Lease, by what was last seen of it.
func (s *seen) isAwaited(now time.Time, o Settings) bool {
	return s.holder != "" && s.holder != o.TakeOverFrom && !s.isSilent(now, o)
}

// isSilent reports whether the other hub is waited for no longer.
func (s *seen) isSilent(now time.Time, o Settings) bool {
	return !now.Before(s.since.Add(o.LostTimeout))
}

// mayTake reports whether this process may hold a worker's Lease now.
func (t *Term) mayTake(lease *coordinationv1.Lease, other seen, now time.Time, o Settings) bool {
	s, held := stampOf(lease)
	switch {
	case !held, s.Holder == t.stamp().Holder, t.knows(s), s.Holder == o.TakeOverFrom:
		return true
	default:
		return other.isSilent(now, o)
	}
}

// renewalOf changes with each renewal, and with the holder.
func renewalOf(lease *coordinationv1.Lease) string {
	s, _ := stampOf(lease)
	at := ""
	if lease.Spec.RenewTime != nil {
		at = lease.Spec.RenewTime.UTC().String()
	}
	return fmt.Sprint(s, at)
}
