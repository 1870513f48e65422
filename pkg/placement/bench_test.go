package placement_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/jobferry/jobferry/pkg/placement"
	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
)

func BenchmarkPlace(b *testing.B) {
	for _, size := range []struct{ clusters, nodes int }{{4, 100}, {200, 25}, {4, 5000}, {200, 1000}} {
		b.Run(fmt.Sprintf("clusters=%d/nodes=%d", size.clusters, size.nodes), func(b *testing.B) {
			clusters := make([]placement.Cluster, size.clusters)
			for c := range clusters {
				nodes := make([]*NodeBuilder, size.nodes)
				for n := range nodes {
					nodes[n] = NewNode(fmt.Sprintf("n%04d", n)).Has("nvidia.com/gpu", "8").Used("cpu", fmt.Sprint(n%4))
				}
				clusters[c] = NewCluster(fmt.Sprintf("c%03d", c)).Nodes(nodes...).Obj()
			}
			job := NewJob("j").Pods(16).Requests("cpu", "1", "memory", "1Gi", "nvidia.com/gpu", "1").Tolerates("gpu").Obj()
			b.ReportAllocs()
			for b.Loop() {
				if d := placement.Place(placement.Request{Job: job}, clusters); d.Cluster == "" {
					b.Fatal(d.Explain())
				}
			}
		})
	}
}

// A Job that waits is the most expensive to explain: all nodes have a reason.
func BenchmarkExplain(b *testing.B) {
	var clusters []placement.Cluster
	for c := range 100 {
		var nodes []*NodeBuilder
		for n := range 100 {
			nodes = append(nodes, NewNode(fmt.Sprintf("n%04d", n)).Has("cpu", "8").Used("cpu", fmt.Sprint(5+n%4)))
		}
		clusters = append(clusters, NewCluster(fmt.Sprintf("c%03d", c)).Nodes(nodes...).Obj())
	}
	job := NewJob("j").Pods(200).Requests("cpu", "2", "memory", "1Gi").Obj()
	b.ReportAllocs()
	for b.Loop() {
		if e := placement.Explain(placement.Request{Job: job}, placement.Subject{}, slices.Values(clusters)); len(e.Workers) != 100 {
			b.Fatal(e.Message)
		}
	}
}
