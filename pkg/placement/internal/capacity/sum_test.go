package capacity

import (
	"fmt"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// podOfOwn is a Pod on node n00000 with as many extended resources as count, all of its own.
func podOfOwn(i int) *corev1.Pod {
	pod := Bind(NewJob("j").Pod(fmt.Sprint("p", i)), "n00000")
	pod.OwnerReferences, pod.UID = nil, types.UID(fmt.Sprint("u", i))
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	requests := corev1.ResourceList{}
	for k := range MaxOthers {
		requests[corev1.ResourceName(fmt.Sprintf("x/%d", i*MaxOthers+k))] = resource.MustParse("1")
	}
	pod.Spec.Containers[0].Resources.Requests = requests
	return pod
}

// Very many Pods of a node, each with resources of its own, cost no more for each than few, and
// nothing is left of them.
func TestPodsOfOwnResources(t *testing.T) {
	cost := func(pods int) uint64 {
		s := newStory(t)
		s.manyNodes(1)
		all := make([]*corev1.Pod, pods)
		for i := range all {
			all[i] = podOfOwn(i)
		}
		cost := costtest.Of(func() {
			for _, pod := range all {
				s.SetPod(pod)
			}
			for _, pod := range all {
				s.DeletePod(pod.UID)
			}
		})
		n := s.nodes["n00000"]
		if left := len(n.bound.total.Others) + len(n.lasting.total.Others); left > 0 {
			t.Errorf("%d names are left", left)
		}
		return cost / uint64(pods)
	}
	if few, many := cost(50), cost(800); many > 2*few {
		t.Errorf("allocates %d bytes for each of 50 Pods, and %d for each of 800", few, many)
	}
}

// Very many nodes, each with resources of its own, cost no more for each than few. The sums have
// some of them.
func TestNodesOfOwnResources(t *testing.T) {
	cost := func(nodes int) uint64 {
		s := newStory(t)
		for i := range nodes {
			node := NewNode(fmt.Sprintf("n%05d", i)).Has("cpu", "1").Obj()
			for k := range 64 {
				node.Status.Allocatable[corev1.ResourceName(fmt.Sprintf("x/%d", i*64+k))] = resource.MustParse("1")
			}
			s.SetNode(node)
		}
		var totals Totals
		cost := costtest.Of(func() { totals = s.Totals() })
		if n := len(totals.Free); n < min(nodes*64, maxNames) || n > maxNames+4 {
			t.Errorf("%d sums", n)
		}
		if again := s.Totals(); !reflect.DeepEqual(totals, again) {
			t.Error("the sums differ from those before")
		}
		if cpu := totals.Allocatable.Cpu().Value(); cpu != int64(nodes) {
			t.Errorf("%d CPUs of %d nodes", cpu, nodes)
		}
		return cost / uint64(nodes)
	}
	if few, many := cost(40), cost(640); many > 2*few {
		t.Errorf("allocates %d bytes for each of 40 nodes, and %d for each of 640", few, many)
	}
}

// A sum is what the amounts are, whatever is added and taken back.
func TestSum(t *testing.T) {
	a := Resources{MilliCPU: 1, Memory: 2, EphemeralStorage: 3, Pods: 4, Others: map[corev1.ResourceName]int64{"x/a": 5}}
	b := Resources{MilliCPU: 10, Others: map[corev1.ResourceName]int64{"x/a": 1, "x/b": 7}}
	var sum Sum
	sum.Add(&a, 1)
	sum.Add(&b, 2)
	if want := a.Add(b, 2); !sum.Total().Equal(want) || a.Others["x/a"] != 5 {
		t.Errorf("%+v, want %+v", sum.Total(), want)
	}
	sum.change(&b, -2)
	if !sum.Total().Equal(a) || len(sum.Total().Others) != 1 {
		t.Errorf("%+v, want %+v", sum.Total(), a)
	}
	of := SumOf(a)
	of.Add(&b, 2)
	if got := of.Total(); got.MilliCPU != 21 || got.Others["x/a"] != 7 || len(got.Others) != 1 || a.Others["x/a"] != 5 {
		t.Errorf("%+v has more than its names, or has changed %+v", got, a)
	}
	has := Resources{MilliCPU: 100, Others: map[corev1.ResourceName]int64{"x/a": 50, "x/none": 0}}
	held := SumOf(Resources{MilliCPU: 1, Others: map[corev1.ResourceName]int64{"x/held": 2}})
	there := SumOf(Resources{Memory: 3, Others: map[corev1.ResourceName]int64{"x/a": 10, "x/held": 1, "x/unknown": 7}})
	left := has.less(&there, &held)
	want := Resources{MilliCPU: 99, Memory: -3, Others: map[corev1.ResourceName]int64{"x/a": 40, "x/held": -3}}
	if !left.Equal(want) || has.Others["x/a"] != 50 {
		t.Errorf("%+v, want %+v", left, want)
	}
	if _, kept := left.Others["x/none"]; !kept {
		t.Error("a resource that the node has none of is lost")
	}
}
