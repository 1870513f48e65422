package scheduling

import (
	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

// Moment chooses a view of a Snapshot.
type Moment int

// The three views: see the package's doc.
const (
	Now Moment = iota
	Idle
	Ever
)

// view is a Snapshot at a moment, with the work that a judgement may still do.
type view struct {
	*Snapshot
	moment Moment
	work   *budget
}

// free is what a node has left for the Job.
func (v view) free(n *Node) *capacity.Resources {
	if v.moment == Now {
		return &n.Free
	}
	return &n.Idle
}

// hinders reports whether a Pod, which lasts or doesn't, is there to be in the Job's way.
func (v view) hinders(lasts bool) bool { return v.moment == Now || lasts }

// helps reports whether a Pod, which lasts or doesn't, is there for what needs it.
func (v view) helps(lasts bool) bool { return v.moment != Idle || lasts }
