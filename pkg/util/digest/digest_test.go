package digest

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestOf(t *testing.T) {
	seen := map[Digest]string{}
	for i := range 1000 {
		name := types.NamespacedName{Namespace: "team", Name: fmt.Sprint(i)}
		if again := (types.NamespacedName{Namespace: "team", Name: fmt.Sprint(i)}); Of(name) != Of(again) {
			t.Fatalf("%s has two digests", name)
		}
		for _, d := range []Digest{Of(name), Of(name.String()), Of(types.NamespacedName{Namespace: name.Name, Name: name.Namespace})} {
			if other, is := seen[d]; is {
				t.Fatalf("%s has the digest of %s", name, other)
			}
			seen[d] = name.String()
		}
	}
}
