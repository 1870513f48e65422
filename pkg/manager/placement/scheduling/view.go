package scheduling

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

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

// cordoned reports whether the node takes no Pods.
func (v view) cordoned(n *Node) bool { return n.Object.Spec.Unschedulable && v.moment != ever }

// taint is the first taint of a node that isn't tolerated; nil if there is none.
func (v view) taint(n *Node, j *Job) *corev1.Taint {
	for i := range n.Object.Spec.Taints {
		taint := &n.Object.Spec.Taints[i]
		if v.moment == ever && strings.HasPrefix(taint.Key, ownTaints) {
			continue
		}
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && !j.tolerates(taint) {
			return taint
		}
	}
	return nil
}

// ownTaints is the prefix of Kubernetes' own taints, such as not-ready. They go when the node is
// well again.
const ownTaints = "node.kubernetes.io/"
