package placement_test

import (
	"fmt"

	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/placement/placementtest"
)

// A Job waits while what it needs is reserved for another one.
func Example() {
	store := placement.NewStore(func(placement.Change) {})
	store.Ledger.SetNode(placementtest.NewNode("node").Has("cpu", "4", "pods", "110").Obj())
	job, other := placementtest.NewJob("job").Requests("cpu", "3"), placementtest.NewJob("other").Requests("cpu", "2")
	place := func() string {
		worker := placement.Cluster{Name: "a", Ready: true, Capacity: store.Snapshot(job.Key(), 36, nil)}
		return placement.Place(placement.Request{Job: job.Obj()}, []placement.Cluster{worker}).Explain()
	}
	store.Ledger.Reserve(other.Key(), placement.ShapeOf(&other.Obj().Spec.Template), placement.PodsWanted(other.Obj()))
	fmt.Println(place())
	store.Ledger.Release(other.Key())
	fmt.Println(place())
	// Output:
	// 0/1 clusters available: 1 Insufficient cpu.
	// a chosen, 1/1 clusters available.
}
