package scheduling

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

// gpus are devices that stand for one extended resource.
type gpus struct{ Devices }

func (gpus) Claimed(string, *corev1.PodSpec, func(int)) corev1.ResourceList { return nil }

func (gpus) Backs(name corev1.ResourceName) bool { return name == "example.com/gpu" }

func TestNodesAreHeldForWhatDevicesStandFor(t *testing.T) {
	one := resource.MustParse("1")
	template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": one, "example.com/gpu": one, "example.com/other": one}},
	}}}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	without := NewSnapshot([]*corev1.Node{node}, nil, nil)
	backed := *without
	backed.Devices = gpus{}
	node = node.DeepCopy()
	node.Status.Allocatable = corev1.ResourceList{"example.com/gpu": one}
	both := NewSnapshot([]*corev1.Node{node}, nil, nil)
	both.Devices = gpus{}
	if plain := (&corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": one, "hugepages-2Mi": one}},
	}}}}); !capacity.ShapeOf(template).HasExtended() || capacity.ShapeOf(plain).HasExtended() {
		t.Error("devices may stand for GPUs, and not for cores")
	}
	for name, row := range map[string]struct {
		free *Snapshot
		gpus int64
	}{"capacity not known": {nil, 1}, "no devices": {without, 1}, "devices only": {&backed, 0}, "a node has some, too": {both, 1}} {
		unit := row.free.Reservable(capacity.LightShapeOf(template)).Unit()
		if unit.Get("example.com/gpu") != row.gpus || unit.MilliCPU != 1000 || unit.Get("example.com/other") != 1 {
			t.Errorf("%s: %+v", name, unit)
		}
	}
	whole := capacity.LightShapeOf(template)
	if part := backed.Reservable(whole); part.Key() == whole.Key() || len(whole.Unit().Others) != 2 || without.Reservable(whole) != whole {
		t.Error("a Shape without a resource is the same as with it, or has changed it")
	}
}

// asked counts what devices are asked.
type asked struct {
	gpus
	times *int
}

func (a asked) Backs(name corev1.ResourceName) bool {
	*a.times++
	return a.gpus.Backs(name)
}

// A tenant's Job has very many containers, and a worker very many nodes.
func TestNamesAreComparedOnce(t *testing.T) {
	template := &corev1.PodTemplateSpec{}
	for range 10_000 {
		template.Spec.InitContainers = append(template.Spec.InitContainers, corev1.Container{
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}},
		})
	}
	times := 0
	worker := NewSnapshot([]*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}, nil, nil)
	worker.Devices = asked{times: &times}
	if worker.Reservable(capacity.LightShapeOf(template)); times != 1 {
		t.Errorf("one name was looked for %d times", times)
	}
}
