package pods

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func podOf(namespace string, i int) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: fmt.Sprintf("p-%05d", i)}
}

// flood has very many Pods of a namespace wait for a worker's turns.
func flood(p *pace, namespace string, pods int) {
	for i := range pods {
		p.take("w1", podOf(namespace, i), testNow)
	}
}

// A tenant who has very many Pods on the Node of a worker deleted waits for himself.
func TestAFloodOfANamespaceDelaysItself(t *testing.T) {
	p := newPace()
	flood(p, "evil", 20_000)
	if wait := p.take("w1", podOf("team", 0), testNow); wait > 50*time.Millisecond {
		t.Errorf("another namespace's first Pod waits for %s", wait)
	}
	if wait := p.take("w2", podOf("evil", 20_000), testNow); wait > 0 {
		t.Errorf("in another worker, it waits for %s", wait)
	}
	if wait := p.take("w1", podOf("evil", 20_001), testNow); wait < time.Minute {
		t.Errorf("its next Pod waits for %s", wait)
	}
}

// A tenant who floods the Nodes of several workers has no more turns than all Pods may have
// together, and delays no Pod of another worker.
func TestAFloodOfSeveralWorkersDelaysNoOther(t *testing.T) {
	const each, seconds = 2_000, 10
	p := newPace()
	type waiter struct {
		worker string
		pod    types.NamespacedName
	}
	due, written := map[int][]waiter{}, 0 // by milliseconds since testNow
	for w := range 5 {
		for i := range each {
			due[0] = append(due[0], waiter{fmt.Sprint("w", w), podOf("evil", w*each+i)})
		}
	}
	for now := range seconds * 1000 {
		at := testNow.Add(time.Duration(now) * time.Millisecond)
		for _, pod := range due[now] {
			wait := p.take(pod.worker, pod.pod, at)
			if wait == 0 {
				written++
				continue
			}
			again := now + int(wait/time.Millisecond) + 1
			due[again] = append(due[again], pod)
		}
		delete(due, now)
		if now%1000 != 500 {
			continue
		}
		pod := podOf("team", now)
		for waited := 0; ; waited++ {
			if p.take("other", pod, at.Add(time.Duration(waited)*time.Millisecond)) == 0 {
				break
			}
			if waited > 100 {
				t.Fatalf("after %d ms, a Pod of another worker waits for %d ms", now, waited)
			}
		}
	}
	if most := (seconds + 2) * writesPerSecond; written > most || written < most*8/10 {
		t.Errorf("in %d s, %d Pods have had turns, where %d may", seconds, written, most)
	}
}

// Pods that need no turn any more delay none, and nothing is kept of them.
func TestTurnsAreGivenBack(t *testing.T) {
	p := newPace()
	flood(p, "evil", 20_000)
	for i := range 20_000 {
		p.leave(podOf("evil", i))
	}
	if wait := p.take("w1", podOf("evil", 20_000), testNow); wait > 50*time.Millisecond {
		t.Errorf("the next Pod waits for %s", wait)
	}
	flood(p, "evil", 1_000)
	p.forget("w1")
	if len(p.pods) != 0 || len(p.workers) != 0 || p.order.Len() != 0 {
		t.Errorf("%d Pods and %d workers are kept", len(p.pods), len(p.workers))
	}
}

// However many namespaces have Pods written, a worker's rate holds, all get as many turns, each Pod
// is looked at a few times, and namespaces whose Pods have had their turns are forgotten.
func TestNamespacesTakeTurns(t *testing.T) {
	const each, namespaces = 1_000, 4
	p := newPace()
	due := map[time.Duration][]types.NamespacedName{} // since testNow, by milliseconds
	for i := range each {
		for n := range namespaces { // each comes later than the one before
			due[time.Duration(n)*time.Second] = append(due[time.Duration(n)*time.Second], podOf(fmt.Sprint(n), i))
		}
	}
	looks, written, had := 0, 0, map[string]int{}
	var now time.Duration
	for ; len(due) > 0 && now < time.Minute; now += time.Millisecond {
		for _, pod := range due[now] {
			looks++
			wait := p.take("w1", pod, testNow.Add(now))
			if wait == 0 {
				had[pod.Namespace]++
				written++
				continue
			}
			again := now + wait.Truncate(time.Millisecond) + time.Millisecond
			due[again] = append(due[again], pod)
		}
		delete(due, now)
		if allowed := writesOfOneBurst + int(now.Seconds()*writesOfOne) + 1; written > allowed {
			t.Fatalf("after %s, %d Pods have had turns, and not %d", now, written, allowed)
		}
		if now == 20*time.Second && had["3"] < writesOfOne*(20-3)/namespaces*9/10 {
			t.Errorf("after %s, the last namespace has had %d turns", now, had["3"])
		}
	}
	if written != each*namespaces || now > 42*time.Second {
		t.Errorf("after %s, %d Pods have had turns", now, written)
	}
	if looks > 5*each*namespaces {
		t.Errorf("%d looks at %d Pods", looks, each*namespaces)
	}
	if n := p.workers["w1"].waiting.Len(); len(p.pods) != 0 || n != 0 {
		t.Errorf("%d Pods are kept, and %d wait", len(p.pods), n)
	}
	t.Logf("%d looks at %d Pods, in %s", looks, written, now)
}
