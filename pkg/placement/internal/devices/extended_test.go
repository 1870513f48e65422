package devices

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/util/costtest"
)

func TestRequestsOfContainers(t *testing.T) {
	with := func(amount string) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{gpu: resource.MustParse(amount)}}}
	}
	car := with("1")
	car.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	for _, row := range []struct {
		name             string
		init, containers []corev1.Container
		devices          int64
	}{
		{"none", nil, []corev1.Container{with("0")}, 0},
		{"containers add up", nil, []corev1.Container{with("1"), with("2")}, 3},
		{"an init container uses what the others will have", []corev1.Container{with("2")}, []corev1.Container{with("1"), with("2")}, 3},
		{"an init container that needs more", []corev1.Container{with("2"), with("5")}, []corev1.Container{with("3")}, 5},
		{"a sidecar runs beside the others", []corev1.Container{car}, []corev1.Container{with("2")}, 3},
		{"an init container doesn't have those of an earlier sidecar", []corev1.Container{car, with("3")}, []corev1.Container{with("2")}, 4},
	} {
		t.Run(row.name, func(t *testing.T) {
			var devices int64
			for _, r := range requestsOf(&corev1.PodSpec{InitContainers: row.init, Containers: row.containers}, gpu, "gpus") {
				devices += r.Exactly.Count
			}
			if devices != row.devices {
				t.Errorf("%d devices, want %d", devices, row.devices)
			}
		})
	}
}

// A tenant's Job has very many containers that want each of many extended resources. No more is
// made of them than is needed to know that they're too many.
func TestDevicesOfVeryManyContainers(t *testing.T) {
	o, spec := worker(), &corev1.PodSpec{}
	for i := range maxExtended {
		class := &resourcev1.DeviceClass{}
		class.Name = fmt.Sprint("c", i)
		o.Classes = append(o.Classes, class)
	}
	for range 1000 {
		limits := corev1.ResourceList{}
		for i := range maxExtended {
			limits[corev1.ResourceName(fmt.Sprint(resourcev1.ResourceDeviceClassPrefix, "c", i))] = resource.MustParse("1")
		}
		spec.Containers = append(spec.Containers, corev1.Container{Resources: corev1.ResourceRequirements{Limits: limits}})
	}
	d, e := New(o), (*extended)(nil)
	if cost := costtest.Of(func() { e = d.extendedOf(spec) }); cost > 1<<20 {
		t.Errorf("they take %d KiB", cost>>10)
	}
	for i := range e.names {
		if n := len(e.requests[i]); n != resourcev1.DeviceRequestsMaxSize+1 {
			t.Errorf("%s: %d requests", e.names[i], n)
		}
	}
}
