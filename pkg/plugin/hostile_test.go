package plugin

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A worker has very many Pods of a Job. For each log, they were all looked at.
func BenchmarkSeveralWorkers(b *testing.B) {
	pods := make([]corev1.Pod, 100_000)
	for i := range pods {
		pods[i] = pod(i)
	}
	for b.Loop() {
		severalWorkers(pods)
	}
}

// Accounts of forged Jobs name very many workers.
func BenchmarkUsageOfVeryManyWorkers(b *testing.B) {
	for b.Loop() {
		all := usageSums{}
		for i := range 250_000 {
			all.of("n", fmt.Sprint(i), corev1.ResourceCPU).Total++
		}
		_ = all.sorted()
	}
}
