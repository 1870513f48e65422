package feed

import (
	"fmt"
	"time"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters/internal/link"
)

// listing bounds how long a worker's Jobs may take to be listed. A worker that answers probes, but
// not this, would else never be lost. Only the time in which the gate is open counts; a loss
// between doesn't set it back, because the worker can cause one when it likes.
type listing struct {
	// seen is when the gate was last found open; zero: it was shut.
	seen time.Time
	// open is for how long the gate has been open since the list began, and quiet for how long
	// since the last object was read.
	open, quiet time.Duration
	// read is how many objects had been read then.
	read int64
	// overdue is set when the time is over, until all Jobs have been listed.
	overdue *link.BoundError
}

// listTime bounds the time that a list may take.
type listTime struct{ quiet, all time.Duration }

// look is called again and again. It reports whether the time is over, and then begins anew.
func (l *listing) look(now time.Time, open, pending bool, read int64, most listTime) (over bool) {
	if !pending {
		*l = listing{}
		return false
	}
	if !open {
		l.seen = time.Time{}
		return false
	}
	if !l.seen.IsZero() {
		l.open += now.Sub(l.seen)
		l.quiet += now.Sub(l.seen)
	}
	l.seen = now
	if read != l.read {
		l.read, l.quiet = read, 0
	}
	const advice = "check what answers at the kubeconfig's server, and the network between"
	switch {
	case l.open >= most.all:
		*l = listing{overdue: unlisted("they haven't all come within %s: "+advice, most.all)}
	case l.quiet >= most.quiet:
		*l = listing{overdue: unlisted("nothing of them has come for %s: "+advice, most.quiet)}
	default:
		return false
	}
	return true
}

func unlisted(format string, limit time.Duration) *link.BoundError {
	return &link.BoundError{Reason: v1alpha1.ReasonUnreachable, Message: "its Jobs can't be listed: " + fmt.Sprintf(format, limit)}
}

// listTimeOf lets the largest list come over a slow link: 75 seconds for one object or page, and 10
// minutes for all by default.
func listTimeOf(o link.Options) listTime {
	return listTime{quiet: 5 * o.RequestTimeout, all: 40 * o.RequestTimeout}
}
