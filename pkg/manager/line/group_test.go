package line

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/group"
	"github.com/jobferry/jobferry/pkg/mirror/mirrortest"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/placement/placementtest"
)

// A JobSet that nobody runs may say that it has very many Jobs, whose Pods may name very many
// nodes: room is held for some of them, and for none that wasn't judged.
func TestRoomIsHeldForSomeJobsOfALargeGroup(t *testing.T) {
	const nodes = 1000
	values := make([]string, 450)
	for i := range values {
		values[i] = fmt.Sprint("value-", i)
	}
	dear := &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpNotIn, Values: values},
		}}},
	}}}
	for name, row := range map[string]struct {
		kinds, each int
		affinity    *corev1.Affinity
		held        int
	}{
		"few":                {2, 3, nil, 6},
		"very many":          {1, 10_000, nil, maxHeldWork / nodes},
		"that name nodes":    {1, 10_000, dear, maxHeldWork / nodes / (1 + (2*16+len(values))/16)},
		"of very many kinds": {40, 1, nil, placement.MaxMates},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHall()
			for i := range nodes - 1 {
				h.store.Ledger.SetNode(placementtest.NewNode(fmt.Sprint("n", i)).Has("cpu", "8", "pods", "110").Obj())
			}
			id := group.ID{Namespace: "ns", Name: "large"}
			q := &Question{Request: placement.Request{Job: mirrortest.New("first").Obj()}, Group: id}
			for kind := range row.kinds {
				kin := group.Kin{Job: mirrortest.New(fmt.Sprint("kind-", kind)).Obj()}
				kin.Job.Spec.Template.Spec.Affinity = row.affinity
				for i := range row.each {
					kin.Keys = append(kin.Keys, types.NamespacedName{Namespace: "ns", Name: fmt.Sprint("job-", kind, "-", i)})
				}
				q.Kin = append(q.Kin, kin)
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.groupChosenLocked(q, h, true); len(h.held[id]) != row.held {
				t.Errorf("room is held for %d Jobs, want %d", len(h.held[id]), row.held)
			}
		})
	}
}
