package waiting_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/jobferry/jobferry/pkg/manager/line/waiting"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// needs are what a Job lacks in some workers: the same.
func needs(need waiting.Need, workers ...string) (n waiting.Needs) {
	for _, worker := range workers {
		n.Set(worker, need)
	}
	return n
}

// Needs are like a map, as long as no more of them are different than a byte can tell.
func TestNeedsAreLikeAMap(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		var n waiting.Needs
		want := map[string]waiting.Need{}
		for range 2000 {
			worker := fmt.Sprint("w-", random.IntN(200))
			want[worker] = waiting.Need{Lacks: waiting.Lack(random.IntN(3)), Pods: random.Int64N(1000), Missed: placement.ChangeKinds(random.IntN(4))}
			n.Set(worker, want[worker])
		}
		if got := maps.Collect(n.All()); !maps.Equal(got, want) || n.Len() != len(want) {
			t.Fatalf("seed %d: %v, want %v", seed, got, want)
		}
		for worker, need := range want {
			if got, possible := n.Get(worker); got != need || !possible {
				t.Fatalf("seed %d: %+v in %s, want %+v", seed, got, worker, need)
			}
		}
		if _, possible := n.Get("none"); possible {
			t.Error("it may have room where it can't")
		}
	}
}

// If very many are different, some are taken for what any change may help.
func TestNeedsThatAreAllDifferent(t *testing.T) {
	var n waiting.Needs
	for i := range int64(400) {
		n.Set(fmt.Sprint("w-", i), waiting.Need{Pods: 1 + i})
	}
	for worker, need := range n.All() {
		if other := (waiting.Need{Lacks: waiting.Other}); worker != fmt.Sprint("w-", need.Pods-1) && need != other {
			t.Errorf("in %s: %+v", worker, need)
		}
	}
	if n.Len() != 400 {
		t.Errorf("%d workers", n.Len())
	}
}

// Of 50,000 Jobs that wait for 100 workers, what they lack takes some 20 MiB, and 250 as maps,
// whatever each of them asks for. A worker of another test takes a byte more.
func TestNeedsAreSmall(t *testing.T) {
	const jobs = 2000
	all, before := make([]waiting.Job, jobs), costtest.Heap()
	for i := range all {
		for w := range 100 {
			all[i].Needs.Set(fmt.Sprint("w-", w), waiting.Need{Pods: int64(1 + i), HelpedBy: placement.ChangeKinds(w % 3)})
		}
	}
	if each := (costtest.Heap() - before) / jobs; each > 1000 {
		t.Errorf("%d bytes for a Job", each)
	}
	runtime.KeepAlive(all)
}

// Workers come and go under ever other names: a Job that is judged then keeps nothing of those that
// went. One that was judged before keeps what it lacks.
func TestWorkersThatWentCostNothing(t *testing.T) {
	name := func(i int) string { return fmt.Sprint("comes-and-goes-", i) }
	before := needs(waiting.Need{Pods: 7}, name(0))
	for i := range 10_000 {
		n := needs(waiting.Need{Pods: 1}, name(i))
		if got := maps.Collect(n.All()); len(got) != 1 || got[name(i)].Pods != 1 {
			t.Fatalf("it lacks %v", got)
		}
		waiting.Forget(name(i))
	}
	var n waiting.Needs
	if cost := costtest.Of(func() { n.Set("stays", waiting.Need{Pods: 1}) }); cost > 5000 {
		t.Errorf("what a Job lacks in one worker takes %d bytes", cost)
	}
	if got := maps.Collect(before.All()); len(got) != 1 || got[name(0)].Pods != 7 {
		t.Errorf("it lacked %v", got)
	}
	if need, possible := before.Get(name(0)); need.Pods != 7 || !possible {
		t.Errorf("it lacked %v", need)
	}
	runtime.KeepAlive(n)
}
