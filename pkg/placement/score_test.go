package placement_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/jobferry/jobferry/pkg/placement"
	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
)

// ordered has clusters that all fit; want is the order of preference.
type ordered struct {
	name     string
	job      *JobBuilder
	among    []string
	prefers  string
	clusters []*Cluster
	want     []string
}

func (o ordered) check(t *testing.T) {
	request := preferring(t, o.prefers, 0)
	request.Job, request.Among = o.job.Obj(), o.among
	got := placement.Place(request, objs(o.clusters))
	if names := candidates(got); !slices.Equal(names, o.want) {
		t.Errorf("got %v, want %v", got.Candidates, o.want)
	}
	if got.Cluster != o.want[0] {
		t.Errorf("chose %q, want %q", got.Cluster, o.want[0])
	}
}

func TestScores(t *testing.T) {
	for _, test := range []ordered{
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
	} {
		t.Run(test.name, test.check)
	}
}

// TestWhatGoesBeforeScores: preference, room, scale-up, preemption and cost.
func TestWhatGoesBeforeScores(t *testing.T) {
	for _, test := range []ordered{
		{name: "room before preemption", job: NewJob("j").Requests("cpu", "3"), clusters: []*Cluster{
			NewCluster("preempting").Weight(1000).Nodes(NewNode("n").Has("cpu", "64").Used("cpu", "62")).Preempting("n", "cpu", "62"),
			NewCluster("free").Nodes(NewNode("n").Has("cpu", "4")),
		}, want: []string{"free", "preempting"}},
		{name: "the one that holds more of the Pods, at the same share", job: NewJob("j").Pods(5).Requests("cpu", "3"), clusters: []*Cluster{
			NewCluster("fewer").Weight(1000).Nodes(NewNode("n").Has("cpu", "12")),
			NewCluster("more").Costs("cpu", "9").Nodes(NewNode("n").Has("cpu", "16")),
			NewCluster("all").Costs("cpu", "9").Nodes(NewNode("n").Has("cpu", "20")),
		}, want: []string{"all", "more", "fewer"}},
		{name: "the cheaper for the Job's requests", job: NewJob("j").Requests("cpu", "1", "memory", "8Gi"), clusters: []*Cluster{
			NewCluster("cheap-cpu").Costs("cpu", "0.02", "memory", "0.01").Weight(1000).Nodes(NewNode("n")),
			NewCluster("cheap-memory").Costs("cpu", "0.04", "memory", "0.005").Nodes(NewNode("n").Used("cpu", "2")),
		}, want: []string{"cheap-memory", "cheap-cpu"}},
		{name: "without prices it costs nothing", job: NewJob("j").Requests("cpu", "1"), clusters: []*Cluster{
			NewCluster("priced").Costs("cpu", "0.001").Nodes(NewNode("n")),
			NewCluster("owned").Nodes(NewNode("n").Used("cpu", "2")),
		}, want: []string{"owned", "priced"}},
		{name: "one price for all: the emptier", job: NewJob("j").Requests("cpu", "1"), clusters: []*Cluster{
			NewCluster("busy").Costs("cpu", "0.1", "memory", "0.3").Nodes(NewNode("n").Used("cpu", "2")),
			NewCluster("idle").Costs("cpu", "0.1", "memory", "0.3").Nodes(NewNode("n")),
		}, want: []string{"idle", "busy"}},
		{name: "room before a low cost", job: NewJob("j").Requests("cpu", "3"), clusters: []*Cluster{
			NewCluster("preempting").Nodes(NewNode("n").Has("cpu", "64").Used("cpu", "62")).Preempting("n", "cpu", "62"),
			NewCluster("free").Costs("cpu", "9").Nodes(NewNode("n").Has("cpu", "4")),
		}, want: []string{"free", "preempting"}},
		{name: "earlier steps before cost, room and scores", job: NewJob("j").Requests("cpu", "1"), prefers: "tier=owned; tier=reserved; *",
			clusters: []*Cluster{
				NewCluster("spot").Nodes(NewNode("n")),
				NewCluster("reserved").Label("tier", "reserved").Costs("cpu", "1").Weight(1000).Nodes(NewNode("n").Has("cpu", "64")),
				NewCluster("owned").Label("tier", "owned").Costs("cpu", "9").Nodes(NewNode("n").Used("cpu", "4")).Preempting("n", "cpu", "4"),
			}, want: []string{"owned", "reserved", "spot"}},
		{name: "the queue's preference before the Job's", job: NewJob("j"), prefers: "tier=owned; *", among: []string{"rented", "owned"},
			clusters: []*Cluster{NewCluster("rented"), NewCluster("owned").Label("tier", "owned")}, want: []string{"rented", "owned"}},
		{name: "a queue's preference goes before cost", job: NewJob("j").Requests("cpu", "1"), among: []string{"dear", "cheap"},
			clusters: []*Cluster{
				NewCluster("cheap").Costs("cpu", "1").Nodes(NewNode("n")),
				NewCluster("dear").Costs("cpu", "2").Nodes(NewNode("n")),
			}, want: []string{"dear", "cheap"}},
		{name: "room now before scale-up, also where Pods have to go", job: NewJob("j").Requests("cpu", "3"), clusters: []*Cluster{
			NewCluster("growing").Weight(1000).Nodes().Growing(9, "64"),
			NewCluster("preempting").Nodes(NewNode("n").Used("cpu", "2")).Preempting("n", "cpu", "2"),
			NewCluster("free").Nodes(NewNode("n").Has("cpu", "64").Used("cpu", "60")),
		}, want: []string{"free", "preempting", "growing"}},
		{name: "the share of what there may be, after scale-up", job: NewJob("j").Requests("cpu", "4"), clusters: []*Cluster{
			NewCluster("few").Nodes().Growing(2, "4"),
			NewCluster("many").Nodes(NewNode("n").Used("cpu", "3")).Growing(9, "4"),
		}, want: []string{"many", "few"}},
		{name: "preference goes before scores", job: NewJob("j").Requests("cpu", "1"), among: []string{"busy", "gone", "idle", "busy"},
			clusters: []*Cluster{
				NewCluster("idle").Nodes(NewNode("n")),
				NewCluster("busy").Nodes(NewNode("n").Used("cpu", "2")),
			}, want: []string{"busy", "idle"}},
	} {
		t.Run(test.name, test.check)
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
