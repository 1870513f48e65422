package placement_test

import (
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/placement"
	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
)

func mate(name string, pods int64, pairs ...string) placement.Mate {
	return placement.Mate{Job: NewJob(name).Requests(pairs...).Obj(), Pods: pods}
}

// A cluster that takes the Job by itself is rejected for what one of its mates lacks there.
func TestFiltersByMates(t *testing.T) {
	gated := mate("gated", 1)
	gated.Job.Spec.SuccessPolicy = &batchv1.SuccessPolicy{}
	many := []placement.Mate{}
	for range placement.MaxMates {
		many = append(many, mate("small", 1, "cpu", "10m"))
	}
	two := func() *Cluster { return NewCluster("c").Nodes(NewNode("a"), NewNode("b")) }
	used := func() *Cluster { return NewCluster("c").Nodes(NewNode("a").Used("cpu", "1"), NewNode("b")) }
	const noRoom = "too little room beside the Pods of its group"
	checkFilters(t, []filterTest{
		{name: "all fit", request: placement.Request{Mates: []placement.Mate{mate("m", 4, "cpu", "1")}}, cluster: two()},
		{
			name: "a mate never fits", request: placement.Request{Mates: []placement.Mate{mate("m", 1, "cpu", "5")}}, cluster: two(),
			want: placement.NeverFits, message: "never fits: Insufficient cpu for Job m of its group", detail: tooLittle(2, "cpu"),
		},
		{
			name: "one that runs no Pods doesn't count", request: placement.Request{Mates: []placement.Mate{mate("m", 0, "cpu", "5")}}, cluster: two(),
		},
		{
			name: "the last of too many doesn't", request: placement.Request{Mates: append(many, mate("m", 1, "cpu", "5"))}, cluster: two(),
		},
		{
			name: "a mate doesn't fit beside the Job", job: NewJob("j").Requests("cpu", "2").Pods(1),
			request: placement.Request{Mates: []placement.Mate{mate("m", 1, "cpu", "4")}}, cluster: used(),
			want: placement.Insufficient, message: noRoom + " for Job m of its group",
			detail: "Pods that must fit at once: 1, that would: 0; " + tooLittle(1, "cpu") + ", " + noRoom,
		},
		{
			name: "the Job doesn't fit beside a mate", job: NewJob("j").Requests("cpu", "1").Pods(5),
			request: placement.Request{Mates: []placement.Mate{mate("m", 3, "cpu", "1")}}, cluster: used(),
			want: placement.Insufficient, message: noRoom,
			detail: "Pods that must fit at once: 5, that would: 4; " + noRoom,
		},
		{
			name: "only a mate runs Pods", job: NewJob("j").With(func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To[int32](0) }),
			request: placement.Request{Mates: []placement.Mate{mate("m", 1, "cpu", "5")}}, cluster: two(),
			want: placement.NeverFits, message: "never fits: Insufficient cpu for Job m of its group", detail: tooLittle(2, "cpu"),
		},
		{
			name: "a mate's feature", request: placement.Request{Mates: []placement.Mate{gated}}, cluster: NewCluster("c").Minor(30),
			want: "FeatureMissing", message: "too old for successPolicy (Kubernetes 1.31) for Job gated of its group", detail: "runs Kubernetes 1.30",
		},
		{
			name: "after scale-up", job: NewJob("j").Requests("cpu", "1").Pods(5),
			request: placement.Request{Mates: []placement.Mate{mate("m", 3, "cpu", "1")}}, cluster: used().Growing(4, "4"),
		},
		{
			name: "after scale-up, and new nodes aren't wanted", job: NewJob("j").Requests("cpu", "1").Pods(5),
			request: placement.Request{RoomNow: true, Mates: []placement.Mate{mate("m", 3, "cpu", "1")}}, cluster: used().Growing(4, "4"),
			want: placement.Insufficient, message: noRoom,
			detail: "Pods that must fit at once: 5, that would: 4; " + noRoom,
		},
	})
}

// The group has one budget of work.
func TestGroupIsJudgedLightly(t *testing.T) {
	request := placement.Request{Job: NewJob("j").Obj(), Lightly: true, Mates: []placement.Mate{mate("m", 3, "cpu", "1")}}
	var nodes []*NodeBuilder
	for range 70_001 {
		nodes = append(nodes, NewNode("n"))
	}
	if d := placement.Place(request, []placement.Cluster{NewCluster("c").Nodes(nodes...).Obj()}); !d.TooMuch {
		t.Errorf("it takes little work: %v %+v", d.Work, d)
	}
	if d := placement.Place(request, []placement.Cluster{NewCluster("c").Nodes(nodes[:100]...).Obj()}); d.TooMuch || d.Work == 0 {
		t.Errorf("it takes much work: %v, %v", d.TooMuch, d.Work)
	}
}

// An explanation says which Job of the group is in the way.
func TestExplainGroup(t *testing.T) {
	used := NewCluster("c").Nodes(NewNode("a").Used("cpu", "1"), NewNode("b")).Obj()
	for name, row := range map[string]struct {
		job  *JobBuilder
		mate placement.Mate
		want string
	}{
		"never":  {NewJob("j"), mate("m", 1, "cpu", "5"), "never fits: 0/2 nodes are available: 2 Insufficient cpu for Job m of its group."},
		"a mate": {NewJob("j").Requests("cpu", "2").Pods(1), mate("m", 1, "cpu", "4"), "no Pod fits now: 0/2 nodes are available: 1 Insufficient cpu, too little room beside the Pods of its group for Job m of its group."},
		"itself": {NewJob("j").Requests("cpu", "1").Pods(5), mate("m", 3, "cpu", "1"), "4 of 5 Pods fit now, no further one: too little room beside the Pods of its group"},
		"crowded": {
			NewJob("j").Requests("cpu", "1").Pods(4), mate("m", 9, "cpu", "1"),
			"not all Pods of the group fit now: an idle worker is needed, as Pods of its group may be in each other's way",
		},
		"all": {NewJob("j").Requests("cpu", "1").Pods(4), mate("m", 3, "cpu", "1"), "all Pods fit now"},
	} {
		t.Run(name, func(t *testing.T) {
			request := placement.Request{Job: row.job.Obj(), Mates: []placement.Mate{row.mate}}
			e := placement.Explain(request, placement.Subject{}, slices.Values([]placement.Cluster{used}))
			if got := e.Workers[0].Message; got != row.want {
				t.Errorf("got  %q\nwant %q", got, row.want)
			}
		})
	}
}
