package v1alpha1

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Cost is what one unit of each resource costs for an hour, in the currency of the hub's admin. The
// unit is one CPU, one GiB of memory, ephemeral storage or huge pages, and one of anything else.
//
// +kubebuilder:validation:MaxProperties=16
// +kubebuilder:validation:XValidation:rule="self.all(r, !string(self[r]).startsWith('-'))",message="a cost must not be negative"
type Cost map[corev1.ResourceName]resource.Quantity

const gibibyte = 1 << 30

// PerHour is what some resources cost for an hour. Those without a price cost nothing.
func (c Cost) PerHour(resources corev1.ResourceList) float64 {
	sum := 0.0
	// in order, so that equal prices have equal sums
	for _, name := range slices.Sorted(maps.Keys(c)) {
		amount := resources[name]
		sum += c.Of(name, amount.AsApproximateFloat64())
	}
	return sum
}

// Of is what an amount of a resource costs for an hour; zero without a price.
func (c Cost) Of(name corev1.ResourceName, amount float64) float64 {
	price := c[name]
	return max(price.AsApproximateFloat64(), 0) * amount / UnitOf(name)
}

// UnitOf is how much of a resource its price is for: a GiB in bytes, or 1.
func UnitOf(name corev1.ResourceName) float64 {
	switch {
	case name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage,
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		return gibibyte
	default:
		return 1
	}
}
