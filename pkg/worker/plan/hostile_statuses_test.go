package plan

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// To know when a Pod ended, whose tenant has given it very many containers, none is copied.
func TestContainersArentCopied(t *testing.T) {
	const pods, containers = 100, 64
	p := aPod("p", exited(1, 0))
	for range containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, p.Status.ContainerStatuses[0])
	}
	var at time.Time
	cost := costtest.Of(func() {
		for range pods {
			at = endTime(p)
		}
	})
	if cost > 64<<10 || !at.Equal(endTime(aPod("p", exited(1, 0)))) {
		t.Errorf("%d bytes for the end of a Pod, %s", cost/pods, at)
	}
}

// A tenant's rules may have 255 codes each, which are sought for each container of very many Pods:
// not one after the other, so that those which no API server takes aren't found.
func TestExitCodesAreSought(t *testing.T) {
	fail := batchv1.PodFailurePolicyActionFailJob
	for _, row := range []struct {
		codes []int32
		found bool
	}{{[]int32{1, 2, 3, 4, 5, 6, 7}, true}, {[]int32{7, 6, 5, 4, 3, 2, 1}, false}} {
		policy := &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{onExit(fail, row.codes...)}}
		if found := rule(policy, aPod("p", exited(1, 0))).action == fail; found != row.found {
			t.Errorf("code 1 of %v is found: %v", row.codes, found)
		}
	}
}
