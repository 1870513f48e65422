package turns

import (
	"slices"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestTurn(t *testing.T) {
	var enqueued []types.NamespacedName
	turn := NewTurn(func(key types.NamespacedName) { enqueued = append(enqueued, key) })
	key := func(namespace, name string) types.NamespacedName {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	first := key("many", "first")
	for range 2 {
		if !turn.Take(first) {
			t.Fatal("a free turn can't be taken")
		}
	}
	for i := range 1000 {
		if turn.Take(key("many", strconv.Itoa(i))) {
			t.Fatal("two have the turn")
		}
	}
	turn.Take(key("few", "a"))
	turn.Ended(key("many", "0")) // it waits
	if len(enqueued) > 0 {
		t.Fatalf("enqueued %v", enqueued)
	}
	turn.Ended(first)
	if turn.Take(first) { // it comes again at once
		t.Error("another one took the next one's turn")
	}
	turn.Ended(key("many", "0")) // it didn't want the turn any more
	if !turn.Take(key("few", "a")) {
		t.Error("the next one hasn't the turn")
	}
	turn.Ended(key("few", "a"))
	if want := []types.NamespacedName{key("many", "0"), key("few", "a"), key("many", "1")}; !slices.Equal(enqueued, want) {
		t.Errorf("enqueued %v, want %v", enqueued, want)
	}
	for len(enqueued) > 0 {
		turn.Ended(enqueued[len(enqueued)-1])
		if turn.of == nil {
			break
		}
	}
	if turn.of != nil || turn.waiting.Len() > 0 {
		t.Errorf("%v has the turn, %d wait", turn.of, turn.waiting.Len())
	}
}
