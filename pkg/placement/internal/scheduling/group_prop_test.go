package scheduling

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// amounts of two resources, in a brute-force scheduler.
type amounts [2]int64

// crowd is a group, and nodes with what is free there. Nothing but resources matters.
type crowd struct {
	nodes []amounts
	units []amounts
	pods  []int64
}

func randomCrowd(r *rand.Rand) crowd {
	c := crowd{}
	for range 1 + r.IntN(3) {
		c.nodes = append(c.nodes, amounts{1 + r.Int64N(8), 1 + r.Int64N(8)})
	}
	for range 2 + r.IntN(3) {
		c.units = append(c.units, amounts{r.Int64N(5), r.Int64N(4)})
		c.pods = append(c.pods, 1+r.Int64N(3))
	}
	return c
}

// always reports whether all Pods find nodes, whatever Pod comes next, and whatever node it takes.
func (c *crowd) always() bool {
	known := map[string]bool{}
	var safe func(free []amounts, left []int64) bool
	safe = func(free []amounts, left []int64) bool {
		key := fmt.Sprint(free, left)
		if answer, is := known[key]; is {
			return answer
		}
		answer := true
		for shape, n := range left {
			if n == 0 {
				continue
			}
			found := false
			for node := range free {
				if free[node][0] < c.units[shape][0] || free[node][1] < c.units[shape][1] {
					continue
				}
				found = true
				nextFree, nextLeft := append([]amounts(nil), free...), append([]int64(nil), left...)
				nextFree[node][0] -= c.units[shape][0]
				nextFree[node][1] -= c.units[shape][1]
				nextLeft[shape]--
				if answer = safe(nextFree, nextLeft); !answer {
					break
				}
			}
			if !found || !answer {
				answer = false
				break
			}
		}
		known[key] = answer
		return answer
	}
	return safe(c.nodes, c.pods)
}

func (c *crowd) world() *world {
	w := &world{}
	for i, n := range c.nodes {
		w.node(fmt.Sprint("n", i)).Status.Allocatable = corev1.ResourceList{
			"cpu": *resource.NewQuantity(n[0], resource.DecimalSI), "memory": *resource.NewQuantity(n[1], resource.BinarySI), "pods": resource.MustParse("110"),
		}
	}
	return w
}

func (c *crowd) kinds() (kinds []kindOfPods) {
	for i, u := range c.units {
		kinds = append(kinds, pod(fmt.Sprint("kind-", i), c.pods[i], "1", func(t *corev1.PodTemplateSpec) {
			t.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
				"cpu": *resource.NewQuantity(u[0], resource.DecimalSI), "memory": *resource.NewQuantity(u[1], resource.BinarySI),
			}
		}))
	}
	return kinds
}

// sure reports whether a group is said to fit now, all of it.
func sure(answers []Answer) bool {
	for i := range answers {
		if a := &answers[i]; a.Verdict != FitsNow || a.Contended || a.Now < a.Wanted {
			return false
		}
	}
	return true
}

// Of a group that fits now, all Pods find nodes, whatever order the scheduler takes them in, and
// whatever nodes it prefers. In an idle worker, a group waits for nothing: it fits, or some of it
// never does. Whoever asks, the verdict is the same.
func TestGroupFitsInAnyOrder(t *testing.T) {
	rounds, safe, found := 1000, 0, 0
	for seed := range uint64(rounds) {
		c := randomCrowd(rand.New(rand.NewPCG(seed, 7)))
		s, kinds := NewSnapshot(c.world().nodes, nil, nil), c.kinds()
		g := asking(kinds, 0)
		answers, _ := g.judge(s, append([]member{{g.own, "", kinds[0].pods}}, g.mates...))
		always := c.always()
		switch is := sure(answers); {
		case is && !always:
			t.Fatalf("seed %d: %+v may not fit", seed, c)
		case is:
			found++
		}
		if always {
			safe++
		}
		verdict := g.Judge(s, kinds[0].pods).Verdict
		if verdict != FitsNow && verdict != Never {
			t.Fatalf("seed %d: %+v: %v in an idle worker", seed, c, verdict)
		}
		for i := 1; i < len(kinds); i++ {
			if other := asking(kinds, i).Judge(s, kinds[i].pods).Verdict; other != verdict {
				t.Fatalf("seed %d: %+v: %v, and %v if %d asks", seed, c, verdict, other, i)
			}
		}
	}
	t.Logf("of %d groups, %d fit in any order, and %d are found to do so", rounds, safe, found)
	if found < safe*3/4 {
		t.Errorf("of %d groups that fit in any order, only %d are found", safe, found)
	}
}
