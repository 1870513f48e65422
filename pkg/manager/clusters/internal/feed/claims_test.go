package feed

import (
	"slices"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/util/decoded"
)

// Package devices reads all allocated devices of a worker at once. So there may not be many of
// them, however the worker divides them into claims and however small they are.
func TestAllocatedDevicesAreBounded(t *testing.T) {
	for _, result := range []resourcev1.DeviceRequestAllocationResult{{}, {Request: "r", Driver: "d", Pool: "p", Device: "n"}} {
		for count := 1; count <= resourcev1.AllocationResultsMaxSize; count++ {
			claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
			claim.Status.Allocation = &resourcev1.AllocationResult{}
			claim.Status.Allocation.Devices.Results = slices.Repeat([]resourcev1.DeviceRequestAllocationResult{result}, count)
			claims := min(maxClaims, maxClaimBytes/(structBytes+decoded.Size(claim)))
			if devices := claims * int64(count); devices > 60_000 {
				t.Errorf("%d claims of %d devices are held", claims, count)
			}
		}
	}
}
