package turns

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestFairQueue(t *testing.T) {
	w := NewQueue()
	key := func(namespace, name string) types.NamespacedName {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	for i := range 1000 {
		w.Add(key("many", fmt.Sprint(i)))
	}
	w.Add(key("few", "a"))
	w.Add(key("many", "0")) // it waits already
	w.Add(key("few", "b"))
	w.Add(key("gone", "c"))
	w.Remove(key("gone", "c"))
	w.Remove(key("gone", "c"))
	w.Remove(key("many", "1"))
	var got []string
	for _, key := range w.Next(5) {
		got = append(got, key.String())
	}
	if want := []string{"many/0", "few/a", "many/2", "few/b", "many/3"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if n := len(w.Next(2000)); n != 996 || w.Len()+w.namespaces.Len()+len(w.of) > 0 || w.Next(1) != nil {
		t.Errorf("%d more, and %d are left", n, w.Len())
	}
}

// How many turns come before an object's is what Next shows.
func TestAhead(t *testing.T) {
	q := NewQueue()
	for _, key := range []types.NamespacedName{
		{Namespace: "many", Name: "1"}, {Namespace: "many", Name: "2"}, {Namespace: "many", Name: "3"},
		{Namespace: "few", Name: "1"}, {Namespace: "few", Name: "2"},
	} {
		q.Add(key)
	}
	q.Next(1)
	key := types.NamespacedName{Namespace: "many", Name: "3"}
	want := q.Ahead(key)
	for ; q.Has(key); want-- {
		if got := q.Ahead(key); got != want {
			t.Errorf("%d turns come first, want %d", got, want)
		}
		q.Next(1)
	}
	if want != -1 {
		t.Errorf("its turn came when %d turns were to come first", want+1)
	}
}
