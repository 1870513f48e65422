package capacity

import (
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestEqualShapesAreShared: Pods of many Jobs of one kind have one Shape, until nobody uses it.
func TestEqualShapesAreShared(t *testing.T) {
	template := func(name string, cpu int64) *corev1.PodTemplateSpec {
		return &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: name, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(cpu, resource.DecimalSI)}},
		}}, NodeName: t.Name()}}
	}
	one, same, other := ShapeOf(template("a", 1)), ShapeOf(template("b", 1)), ShapeOf(template("a", 2))
	if one != same || one == other {
		t.Errorf("Pods of one Shape share it: %t, those of another have it: %t", one == same, one == other)
	}
	isKnown := func(id identity) bool { _, is := shapes.Load(id); return is }
	id := identity{one.key, one.work, one.bytes}
	if !isKnown(id) {
		t.Error("a Shape that is used isn't known")
	}
	runtime.KeepAlive(one)
	runtime.KeepAlive(same)
	for isKnown(id) { // cleanups run after a collection
		runtime.GC()
	}
}
