package turns

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestLimiterDefers(t *testing.T) {
	var enqueued []types.NamespacedName
	l := NewLimiter(2, func(keys ...types.NamespacedName) { enqueued = append(enqueued, keys...) })
	key := func(name string) types.NamespacedName { return types.NamespacedName{Name: name} }

	for _, name := range []string{"one", "two"} {
		if !l.Acquire("slow", key(name)) {
			t.Fatalf("no place for %s of an idle worker", name)
		}
	}
	if l.Acquire("slow", key("three")) || l.Acquire("slow", key("four")) {
		t.Fatal("a busy worker took a Job")
	}
	if l.RoomOrDefer("slow", key("four")) || !l.RoomOrDefer("quick", key("five")) {
		t.Fatal("it isn't said that there's no place, or that there is one")
	}
	if !l.Acquire("quick", key("five")) {
		t.Fatal("a busy worker kept a Job from another")
	}
	l.Release("slow")
	l.Release("slow")
	if want := []types.NamespacedName{key("three"), key("four")}; !slices.Equal(enqueued, want) {
		t.Errorf("enqueued %v, want %v", enqueued, want)
	}
	l.Release("quick")
	if len(l.places) != 0 {
		t.Errorf("left behind: %v", l.places)
	}
}

// A namespace has very many Jobs, each of which takes long in a worker, such as to copy what its
// Pods refer to: a Job of another namespace is the next but one.
func TestLimiterTakesTurns(t *testing.T) {
	var enqueued []string
	l := NewLimiter(1, func(keys ...types.NamespacedName) {
		for _, key := range keys {
			enqueued = append(enqueued, key.String())
		}
	})
	l.Acquire("worker", types.NamespacedName{Namespace: "many", Name: "first"})
	for i := range 1000 {
		l.Acquire("worker", types.NamespacedName{Namespace: "many", Name: strconv.Itoa(i)})
	}
	l.Acquire("worker", types.NamespacedName{Namespace: "few", Name: "a"})
	l.Release("worker")
	if len(enqueued) != 1001 || !slices.Equal(enqueued[:3], []string{"many/0", "few/a", "many/1"}) {
		t.Errorf("%d are enqueued, the first are %v", len(enqueued), enqueued[:3])
	}
}

// Jobs come in any order, are deferred more than once, and find nothing to do when they come back:
// all of them have to have their turn.
func TestLimiterForgetsNoJob(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		var turns []types.NamespacedName
		l := NewLimiter(1+random.IntN(3), func(keys ...types.NamespacedName) { turns = append(turns, keys...) })
		waiting := map[types.NamespacedName]bool{}
		inside := 0
		for range 200 {
			if random.IntN(2) == 0 { // of ten names, some come again while they're deferred
				turns = append(turns, types.NamespacedName{Name: strconv.Itoa(random.IntN(10))})
			}
			switch {
			case len(turns) > 0 && random.IntN(2) == 0:
				key := turns[0]
				turns = turns[1:]
				delete(waiting, key)
				if random.IntN(4) == 0 {
					break // nothing to do for it
				}
				if l.Acquire("worker", key) {
					inside++
				} else {
					waiting[key] = true
				}
			case inside > 0:
				inside--
				l.Release("worker")
			}
		}
		for ; inside > 0; inside-- {
			l.Release("worker")
		}
		for _, key := range turns {
			delete(waiting, key)
		}
		if len(waiting) > 0 || len(l.places) > 0 {
			t.Fatalf("seed %d: forgotten %v, left behind %v", seed, waiting, l.places)
		}
	}
}
