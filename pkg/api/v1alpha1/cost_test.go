package v1alpha1_test

import (
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

func TestCostPerHour(t *testing.T) {
	type list map[string]string
	tests := []struct {
		name            string
		cost, resources list
		want            float64
	}{
		{"none", nil, list{"cpu": "1"}, 0},
		{"per CPU", list{"cpu": "0.03"}, list{"cpu": "1500m"}, 0.045},
		{"per GiB", list{"memory": "0.004", "ephemeral-storage": "1", "hugepages-2Mi": "2"},
			list{"memory": "8Gi", "ephemeral-storage": "512Mi", "hugepages-2Mi": "256Mi"}, 1.032},
		{"per unit", list{"nvidia.com/gpu": "2.5"}, list{"nvidia.com/gpu": "8"}, 20},
		{"what has no price", list{"cpu": "1"}, list{"memory": "1Gi"}, 0},
		{"negative, from before the CRD refused it", list{"cpu": "-1", "memory": "1"}, list{"cpu": "1", "memory": "1Gi"}, 1},
		{"small and large", list{"cpu": "1n", "memory": "1E"}, list{"cpu": "1n", "memory": "1Ki"}, 1e18 / (1 << 20)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cost, resources := v1alpha1.Cost{}, corev1.ResourceList{}
			for name, price := range test.cost {
				cost[corev1.ResourceName(name)] = resource.MustParse(price)
			}
			for name, amount := range test.resources {
				resources[corev1.ResourceName(name)] = resource.MustParse(amount)
			}
			if got := cost.PerHour(resources); math.Abs(got-test.want) > 1e-9*max(1, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
