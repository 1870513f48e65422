// Package capacitytest builds Jobs and nodes for tests in a few words: every builder starts from
// something that fits and works, and each verb changes one thing. Quantities that can't be parsed
// panic. It imports none of the packages that it serves, so that their internal tests can use it.
package capacitytest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Quantities reads pairs of a resource's name and a quantity: "cpu", "2", "memory", "4Gi".
func Quantities(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i+1 < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}
