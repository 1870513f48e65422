package devices

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/placement/internal/scheduling"
)

// Schedulers before 1.37 may give a Pod two devices that don't differ, but never more devices than
// there are.
func TestDistinctAttribute(t *testing.T) {
	for _, row := range []struct {
		name           string
		minor          int
		count, indexes int64
		verdict        scheduling.Verdict
		now            int64
	}{
		{"devices differ", 36, 2, 2, scheduling.FitsNow, 1},
		{"devices don't differ", 37, 2, 1, scheduling.Never, 0},
		{"devices don't differ, 1.36", 36, 2, 1, scheduling.FitsLater, 0},
		{"too few devices, 1.36", 36, 3, 1, scheduling.Never, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := worker()
			o.Minor, o.Slices = row.minor, o.Slices[:1]
			for i := range o.Slices[0].Spec.Devices {
				o.Slices[0].Spec.Devices[i].Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
					"index": {IntValue: ptr.To(int64(i) % row.indexes)},
				}
			}
			claim := oneDevice("one")
			claim.Spec.Devices.Requests[0].Exactly.Count = row.count
			claim.Spec.Devices.Constraints = []resourcev1.DeviceConstraint{{DistinctAttribute: ptr.To(resourcev1.FullyQualifiedName("example.com/index"))}}
			template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "each"}}
			template.Spec.Spec = claim.Spec
			o.Claims, o.Templates = []*resourcev1.ResourceClaim{claim}, []*resourcev1.ResourceClaimTemplate{template}
			expect(t, judge(o, 1, func(s *corev1.PodSpec) {
				s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: ptr.To("one")}}
			}), row.verdict, row.now)
			expect(t, judge(o, 1, func(s *corev1.PodSpec) {
				s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To("each")}}
			}), row.verdict, row.now)
		})
	}
}
