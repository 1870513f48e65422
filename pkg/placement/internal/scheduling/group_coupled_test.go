package scheduling

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ties are a group whose members are tied to each other, and the nodes it's judged on.
type ties struct {
	world *world
	kinds []kindOfPods
}

func randomTies(r *rand.Rand) ties {
	t := ties{world: &world{}}
	for i := range 2 + r.IntN(3) {
		n := t.world.node(fmt.Sprint("n", i), "zone="+fmt.Sprint(r.IntN(3)))
		n.Status.Allocatable = corev1.ResourceList{"cpu": *resource.NewQuantity(1+r.Int64N(5), resource.DecimalSI), "pods": resource.MustParse("110")}
	}
	members := 2 + r.IntN(2)
	for i := range members {
		var changes []func(*corev1.PodTemplateSpec)
		key := []string{"zone", "zone", corev1.LabelHostname}[r.IntN(3)]
		other := fmt.Sprint("k", r.IntN(members))
		switch r.IntN(8) {
		case 0:
			changes = append(changes, near(other, key))
		case 1:
			changes = append(changes, near(fmt.Sprint("k", i), key))
		case 2:
			changes = append(changes, awayFrom(other, key))
		case 3:
			changes = append(changes, near(fmt.Sprint("k", i), "zone"), awayFrom(other, key))
		case 4:
			changes = append(changes, spread(other, key))
		case 5:
			changes = append(changes, spread(fmt.Sprint("k", i), key))
		case 6:
			changes = append(changes, hostPort)
		}
		t.kinds = append(t.kinds, pod(fmt.Sprint("k", i), 1+r.Int64N(2), fmt.Sprint(1+r.IntN(2)), changes...))
	}
	return t
}

// always reports whether all Pods find nodes, whatever Pod comes next, and whatever node it takes.
// A Pod that finds none is tried again.
func (t *ties) always() bool {
	known := map[string]bool{}
	jobs := make([]*Job, len(t.kinds))
	left := make([]int64, len(t.kinds))
	for i, k := range t.kinds {
		jobs[i], left[i] = NewJob(k.job()), k.pods
	}
	var safe func(on [][]int64, left []int64) bool
	safe = func(on [][]int64, left []int64) bool {
		key := fmt.Sprint(on)
		if answer, is := known[key]; is {
			return answer
		}
		waiting, moved, answer := false, false, true
		v := view{t.with(on), Now, nil}
		for shape := range left {
			if left[shape] == 0 {
				continue
			}
			waiting = true
			filters, states := jobs[shape].allFilters(v), jobs[shape].states(v)
			for node := range on {
				p := newPlace(v, node)
				if firstReason(filters, &p) != nil || reasonOf(states, &p) != nil {
					continue
				}
				moved = true
				on[node][shape]++
				left[shape]--
				answer = answer && safe(on, left)
				on[node][shape]--
				left[shape]++
			}
		}
		answer = answer && (moved || !waiting)
		known[key] = answer
		return answer
	}
	on := make([][]int64, len(t.world.nodes))
	for i := range on {
		on[i] = make([]int64, len(t.kinds))
	}
	return safe(on, left)
}

// with is the worker when Pods of the group run on its nodes, which are in the order of their
// names.
func (t *ties) with(on [][]int64) *Snapshot {
	var pods []*corev1.Pod
	for node := range on {
		for shape, n := range on[node] {
			for range n {
				made := podOf(t.kinds[shape].job())
				made.ObjectMeta = metav1.ObjectMeta{Name: fmt.Sprint(len(pods)), Namespace: "ns", Labels: made.Labels}
				made.Spec.NodeName = t.world.nodes[node].Name
				pods = append(pods, made)
			}
		}
	}
	return NewSnapshot(t.world.nodes, pods, nil)
}

// A group whose Pods must be near each other, or apart, is placed where they are, whatever order
// the scheduler takes them in, and whatever nodes it prefers.
func TestTiedGroupFitsInAnyOrder(t *testing.T) {
	rounds, safe, found := 300, 0, 0
	for seed := range uint64(rounds) {
		ties := randomTies(rand.New(rand.NewPCG(seed, 5)))
		s := NewSnapshot(ties.world.nodes, nil, nil)
		g := asking(ties.kinds, 0)
		answers, _ := g.judge(s, append([]member{{g.own, "", ties.kinds[0].pods}}, g.mates...))
		always := ties.always()
		if sure(answers) {
			found++
			if !always {
				t.Errorf("seed %d: %s may not fit", seed, ties.String())
			}
		}
		if always {
			safe++
		}
		verdict := g.Judge(s, ties.kinds[0].pods).Verdict
		if verdict != FitsNow && verdict != Never {
			t.Errorf("seed %d: %v in an idle worker", seed, verdict)
		}
		for i := 1; i < len(ties.kinds); i++ {
			if other := asking(ties.kinds, i).Judge(s, ties.kinds[i].pods).Verdict; other != verdict {
				t.Errorf("seed %d: %v, and %v if %d asks", seed, verdict, other, i)
			}
		}
	}
	t.Logf("of %d groups, %d fit in any order, and %d are found to do so", rounds, safe, found)
	if found < safe/2 {
		t.Errorf("of %d groups that fit in any order, only %d are found", safe, found)
	}
}

func (t *ties) String() string {
	text := ""
	for _, n := range t.world.nodes {
		text += fmt.Sprintf("\nnode %s in zone %s: %v CPUs", n.Name, n.Labels["zone"], n.Status.Allocatable.Cpu())
	}
	for _, k := range t.kinds {
		spec := k.job().Spec.Template.Spec
		text += fmt.Sprintf("\n%d × %s: %s CPUs, %v %v %v", k.pods, k.name, k.cpu, spec.Affinity, spec.TopologySpreadConstraints, spec.Containers[0].Ports)
	}
	return text
}
