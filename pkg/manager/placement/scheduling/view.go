package scheduling

import (
	"github.com/jobferry/jobferry/pkg/manager/capacity"
)

// moment chooses a view of a Snapshot.
type moment int

const (
	now moment = iota
	idle
	ever
)

// view is a Snapshot at a moment.
type view struct {
	*Snapshot
	moment moment
}

// free is what a node has left for the Job.
func (v view) free(n *Node) *capacity.Resources {
	if v.moment == now {
		return &n.Free
	}
	return &n.Idle
}

// hinders reports whether a Pod, which lasts or doesn't, is there to be in the Job's way.
func (v view) hinders(lasts bool) bool { return v.moment == now || lasts }

// helps reports whether a Pod, which lasts or doesn't, is there for what needs it.
func (v view) helps(lasts bool) bool { return v.moment != idle || lasts }
