package capacity

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

func anyResources(t *rapid.T, label string) Resources {
	amount := rapid.Int64Range(-100, 100)
	r := Resources{
		MilliCPU: amount.Draw(t, label+" cpu"), Memory: amount.Draw(t, label+" memory"),
		EphemeralStorage: amount.Draw(t, label+" storage"), Pods: amount.Draw(t, label+" pods"),
	}
	if others := rapid.MapOfN(rapid.SampledFrom([]corev1.ResourceName{"a.com/x", "b.com/y"}), amount, 0, 2).Draw(t, label); len(others) > 0 {
		r.Others = others
	}
	return r
}

func TestResourcesLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyResources(t, "a"), anyResources(t, "b")
		n := rapid.Int64Range(-5, 5).Draw(t, "n")
		before := a.Add(b, 0)
		sum := a.Add(b, n)
		if !sum.Add(b, -n).Equal(a) || !before.Equal(a) {
			t.Fatalf("adding %v %d times to %v can't be undone", b, n, a)
		}
		if !ResourcesOf(a.List()).Equal(a) {
			t.Fatalf("%v doesn't survive a round trip", a)
		}
		floor := a.atLeastZero()
		if (Resources{}).exceeds(floor) || floor.exceeds(a) != (Resources{}).exceeds(a) {
			t.Fatalf("%v at least zero is %v", a, floor)
		}
		if !a.Equal(b) && !a.exceeds(b) && !b.exceeds(a) {
			t.Fatalf("%v and %v differ, but none exceeds the other", a, b)
		}
		for name, want := range a.List() {
			got := a.Get(name)
			if name == corev1.ResourceCPU && got != want.MilliValue() || name != corev1.ResourceCPU && got != want.Value() {
				t.Fatalf("%s: got %d, want %v", name, got, want)
			}
		}
	})
}

func TestExtended(t *testing.T) {
	for name, want := range map[corev1.ResourceName]bool{
		"nvidia.com/gpu": true, "deviceclass.resource.kubernetes.io/gpu": true,
		"cpu": false, "hugepages-2Mi": false, "kubernetes.io/x": false, "node.kubernetes.io/x": false, "mykubernetes.io/x": true,
	} {
		if Extended(name) != want {
			t.Errorf("%s: %t", name, !want)
		}
	}
}
