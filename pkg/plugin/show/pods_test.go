package show

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// What isn't an index costs nothing to sort by.
func TestSortingCost(t *testing.T) {
	const most = 2 << 10 // for a Pod, which is copied once
	for _, index := range []string{"", "x", strings.Repeat("x", 10<<10)} {
		pods := make([]corev1.Pod, 1000)
		for i := range pods {
			pods[i] = pod("a", index, time.Duration(i*7919%1000)*time.Minute, corev1.PodRunning)
		}
		if cost := costtest.Of(func() { SortedPods(pods) }) / uint64(len(pods)); cost > most {
			t.Errorf("index %.10q: %d bytes a Pod, want %d at most", index, cost, most)
		}
	}
}

func TestPodIndex(t *testing.T) {
	for index, want := range map[string]string{"": "", "7": "7", "2147483647": "2147483647", "21474836470": ""} {
		p := pod("a", index, 0, corev1.PodRunning)
		if got := PodIndex(&p); got != want {
			t.Errorf("%q: %q, want %q", index, got, want)
		}
	}
}
