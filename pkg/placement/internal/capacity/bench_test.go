package capacity_test

import (
	"fmt"
	"testing"

	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
	"github.com/jobferry/jobferry/pkg/placement/internal/change"
)

// BenchmarkBurst is what one of many Jobs at once costs: placed among four workers, reserved, its
// Pod created and bound, ended, and released. The work of the Ledgers and of placement alone.
func BenchmarkBurst(b *testing.B) {
	for _, size := range []struct{ nodes, placed int }{{100, 500}, {100, 5000}, {5000, 5000}} {
		b.Run(fmt.Sprintf("nodes=%d/placed=%d", size.nodes, size.placed), func(b *testing.B) {
			workers := make([]*capacity.Ledger, 4)
			for w := range workers {
				workers[w] = capacity.New(func(change.Change) {})
				for n := range size.nodes {
					workers[w].SetNode(NewNode(fmt.Sprintf("n%04d", n)).Has("cpu", "64").Obj())
				}
			}
			for i := range size.placed {
				j := NewJob(fmt.Sprint("before", i)).Requests("cpu", "100m")
				workers[i%4].Reserve(j.Key(), shape(j), 1)
			}
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				i++
				placeAndRun(b, workers, NewJob(fmt.Sprint("j", i)).Requests("cpu", "100m", "memory", "100Mi"))
			}
		})
	}
}

func placeAndRun(b *testing.B, workers []*capacity.Ledger, j *JobBuilder) {
	clusters := make([]placement.Cluster, len(workers))
	for w := range workers {
		clusters[w] = placement.Cluster{Name: fmt.Sprint(w), Ready: true, Capacity: snapshot(workers[w].Free(nobody))}
	}
	decision := placement.Place(placement.Request{Job: j.Obj()}, clusters)
	if decision.Cluster == "" {
		b.Fatal(decision.Explain())
	}
	l := workers[decision.Cluster[0]-'0']
	l.Reserve(j.Key(), shape(j), 1)
	pod := j.Pod(j.Obj().Name)
	l.SetPod(pod)
	l.SetPod(Bind(pod, "n0000"))
	l.DeletePod(pod.UID)
	l.Release(j.Key())
}
