package job

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestFairQueue(t *testing.T) {
	w := newFairQueue()
	key := func(namespace, name string) types.NamespacedName {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	for i := range 1000 {
		w.add(key("many", fmt.Sprint(i)))
	}
	w.add(key("few", "a"))
	w.add(key("many", "0")) // it waits already
	w.add(key("few", "b"))
	w.add(key("gone", "c"))
	w.remove(key("gone", "c"))
	w.remove(key("gone", "c"))
	w.remove(key("many", "1"))
	var got []string
	for _, key := range w.next(5) {
		got = append(got, key.String())
	}
	if want := []string{"many/0", "few/a", "many/2", "few/b", "many/3"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if n := len(w.next(2000)); n != 996 || w.len()+w.namespaces.Len()+len(w.of) > 0 || w.next(1) != nil {
		t.Errorf("%d more, and %d are left", n, w.len())
	}
}
