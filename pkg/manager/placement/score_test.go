package placement_test

import (
	"fmt"
	"slices"
	"testing"

	. "github.com/jobferry/jobferry/pkg/manager/capacity/capacitytest"
	"github.com/jobferry/jobferry/pkg/manager/placement"
)

// TestScores has clusters that all fit; want is the order of preference.
func TestScores(t *testing.T) {
	tests := []struct {
		name     string
		job      *JobBuilder
		among    []string
		clusters []*Cluster
		want     []string
	}{
		{name: "the emptier", job: NewJob("j").Requests("cpu", "1"), clusters: []*Cluster{
			NewCluster("busy").Nodes(NewNode("n").Used("cpu", "2")),
			NewCluster("idle").Nodes(NewNode("n")),
		}, want: []string{"idle", "busy"}},
		{name: "a share, not an amount", job: NewJob("j").Requests("cpu", "1"), clusters: []*Cluster{
			NewCluster("large").Nodes(NewNode("n").Has("cpu", "64").Used("cpu", "40")),
			NewCluster("small").Nodes(NewNode("n").Has("cpu", "8")),
		}, want: []string{"small", "large"}},
		{name: "the share after the Job", job: NewJob("j").Requests("cpu", "3"), clusters: []*Cluster{
			NewCluster("large").Nodes(NewNode("n").Has("cpu", "64").Used("cpu", "16")),
			NewCluster("small").Nodes(NewNode("n").Has("cpu", "4")),
		}, want: []string{"large", "small"}},
		{name: "the scarcest resource decides", job: NewJob("j").Requests("cpu", "1", "nvidia.com/gpu", "1"), clusters: []*Cluster{
			NewCluster("gpus-taken").Nodes(NewNode("n").Has("nvidia.com/gpu", "8").Used("nvidia.com/gpu", "6")),
			NewCluster("cpus-taken").Nodes(NewNode("n").Has("nvidia.com/gpu", "8").Used("cpu", "1500m")),
		}, want: []string{"cpus-taken", "gpus-taken"}},
		{name: "cpu and memory count for Jobs that ask for nothing", job: NewJob("j"), clusters: []*Cluster{
			NewCluster("busy").Nodes(NewNode("n").Used("memory", "15Gi")),
			NewCluster("idle").Nodes(NewNode("n").Used("pods", "10")),
		}, want: []string{"idle", "busy"}},
		{name: "nodes that don't suit don't count", job: NewJob("j").Requests("cpu", "1").NodeSelector("disk", "ssd"), clusters: []*Cluster{
			NewCluster("few").Nodes(NewNode("a").Label("disk", "ssd").Used("cpu", "2"), NewNode("b"), NewNode("c")),
			NewCluster("some").Nodes(NewNode("a").Label("disk", "ssd").Used("cpu", "1")),
		}, want: []string{"some", "few"}},
		{name: "weight multiplies", job: NewJob("j").Requests("cpu", "1"), clusters: []*Cluster{
			NewCluster("heavy").Weight(3).Nodes(NewNode("n").Used("cpu", "2")),
			NewCluster("light").Nodes(NewNode("n").Used("cpu", "1")),
		}, want: []string{"heavy", "light"}},
		{name: "no weight is weight one", job: NewJob("j").Requests("cpu", "1"), clusters: []*Cluster{
			NewCluster("none").Weight(0).Nodes(NewNode("n")),
			NewCluster("one").Nodes(NewNode("n").Used("cpu", "1")),
		}, want: []string{"none", "one"}},
		{name: "unknown capacity counts as half free", job: NewJob("j").Requests("cpu", "1"), clusters: []*Cluster{
			NewCluster("busy").Nodes(NewNode("n").Used("cpu", "2")),
			NewCluster("unknown"),
			NewCluster("idle").Nodes(NewNode("n")),
		}, want: []string{"idle", "unknown", "busy"}},
		{name: "room before preemption", job: NewJob("j").Requests("cpu", "3"), clusters: []*Cluster{
			NewCluster("preempting").Weight(1000).Nodes(NewNode("n").Has("cpu", "64").Used("cpu", "62")).Preempting("n", "cpu", "62"),
			NewCluster("free").Nodes(NewNode("n").Has("cpu", "4")),
		}, want: []string{"free", "preempting"}},
		{name: "preference goes before scores", job: NewJob("j").Requests("cpu", "1"), among: []string{"busy", "gone", "idle", "busy"},
			clusters: []*Cluster{
				NewCluster("idle").Nodes(NewNode("n")),
				NewCluster("busy").Nodes(NewNode("n").Used("cpu", "2")),
			}, want: []string{"busy", "idle"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := placement.Place(placement.Request{Job: test.job.Obj(), Among: test.among}, objs(test.clusters))
			if names := candidates(got); !slices.Equal(names, test.want) {
				t.Errorf("got %v, want %v", got.Candidates, test.want)
			}
			if got.Cluster != test.want[0] {
				t.Errorf("chose %q, want %q", got.Cluster, test.want[0])
			}
		})
	}
}

// TestEqualsAreSpread places many Jobs, each alone, into clusters that are alike.
func TestEqualsAreSpread(t *testing.T) {
	clusters := objs([]*Cluster{NewCluster("a"), NewCluster("b"), NewCluster("c")})
	counts := map[string]int{}
	for i := range 300 {
		job := NewJob(fmt.Sprint("j", i))
		counts[placement.Place(placement.Request{Job: job.Obj()}, clusters).Cluster]++
	}
	for _, cluster := range []string{"a", "b", "c"} {
		if counts[cluster] < 60 {
			t.Errorf("of 300 Jobs only %d went to %s", counts[cluster], cluster)
		}
	}
}

func objs(builders []*Cluster) []placement.Cluster {
	clusters := make([]placement.Cluster, len(builders))
	for i, builder := range builders {
		clusters[i] = builder.Obj()
	}
	return clusters
}

func candidates(d placement.Decision) []string {
	var names []string
	for _, c := range d.Candidates {
		names = append(names, c.Cluster)
	}
	return names
}
