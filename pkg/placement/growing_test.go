package placement_test

import (
	"testing"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/placement/placementtest"
)

// A node that comes or goes while a Snapshot is made isn't free there while another one may be
// added in its place, nor is there neither.
func TestASnapshotIsOfOneMoment(t *testing.T) {
	store := placement.NewStore(func(placement.Change) {})
	has := placementtest.Quantities("cpu", "4", "pods", "110")
	of := &placement.Autoscaler{Spec: &v1alpha1.Autoscaling{NodeTemplates: []v1alpha1.NodeTemplate{
		{Name: "grows", Labels: map[string]string{"grows": ""}, MaxNodes: 2, Allocatable: has},
	}}}
	ended, stop := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		node := placementtest.NewNode("node").Label("grows", "").Has("cpu", "4", "pods", "110").Obj()
		for {
			select {
			case <-stop:
				return
			default:
				store.Ledger.SetNode(node)
				store.Ledger.DeleteNode(node.Name)
			}
		}
	}()
	defer func() { close(stop); <-ended }()
	job := placementtest.NewJob("job").Requests("cpu", "4")
	shape := placement.ShapeOf(&job.Obj().Spec.Template)
	seen := map[int]bool{}
	for range 5_000 {
		s := store.Snapshot(job.Key(), 36, of)
		seen[len(s.Nodes)] = true
		if there, more := len(s.Nodes), len(s.Autoscaling.Nodes(shape, 3)); there+more != 2 {
			t.Fatalf("%d nodes are there and %d may be added, want 2 together", there, more)
		}
	}
	t.Logf("with and without the node: %v", seen)
}
