package devices

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/placement/internal/scheduling"
)

// What no API server stores keeps Jobs from this worker, and does nothing else.
func TestMadeUpObjects(t *testing.T) {
	claim := func(s *corev1.PodSpec) {
		s.ResourceClaims = []corev1.PodResourceClaim{{Name: "x", ResourceClaimTemplateName: ptr.To("x")}}
	}
	for name, row := range map[string]struct {
		selector resourcev1.DeviceSelector
		request  resourcev1.DeviceRequest
		asks     func(*corev1.PodSpec)
	}{
		"a class whose selector has no expression": {resourcev1.DeviceSelector{}, oneDevice("x").Spec.Devices.Requests[0], asking("1")},
		"a request of nothing":                     {worker().Classes[0].Spec.Selectors[0], resourcev1.DeviceRequest{Name: "x"}, claim},
	} {
		for _, minor := range []int{34, 35, 36, 37} {
			o := worker()
			o.Minor, o.Classes[0].Spec.Selectors = minor, []resourcev1.DeviceSelector{row.selector}
			template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x"}}
			template.Spec.Spec.Devices.Requests = []resourcev1.DeviceRequest{row.request}
			o.Templates = []*resourcev1.ResourceClaimTemplate{template}
			if a := judge(o, 1, row.asks); a.Verdict == scheduling.FitsNow || a.Now > 0 {
				t.Errorf("%s, 1.%d: %v, %d now", name, minor, a.Verdict, a.Now)
			}
		}
	}
}
