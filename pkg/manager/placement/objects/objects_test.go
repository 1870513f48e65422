package objects_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/placement/objects"
)

func quota(namespace, name string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func TestAdmissionHasTheRulesOfItsNamespace(t *testing.T) {
	s := objects.New(func() {})
	s.Quotas.Know(true)
	for _, q := range []*corev1.ResourceQuota{quota("a", "y"), quota("b", "other"), quota("a", "x"), quota("a", "gone")} {
		s.Quotas.Set(q)
	}
	s.Quotas.Remove(types.NamespacedName{Namespace: "a", Name: "gone"})
	expect := func(when string, want ...string) {
		t.Helper()
		var got []string
		for _, q := range s.Admission("a").Quotas {
			got = append(got, q.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	expect("in order of names", "x", "y")
	s.Quotas.Set(quota("a", "z"))
	expect("after a change", "x", "y", "z")
	s.Quotas.Know(false)
	expect("not known any more")
	s.Quotas.Know(true)
	expect("known again", "x", "y", "z")
	s.Quotas.Forget()
	s.Quotas.Know(true)
	expect("forgotten")
	if keys := s.Quotas.Keys(); len(keys) > 0 {
		t.Errorf("forgotten, but there: %v", keys)
	}
}

// A class that isn't there refuses Jobs; a kind that isn't known doesn't.
func TestWhatIsUnknownIsNil(t *testing.T) {
	s := objects.New(func() {})
	if s.Admission("a").PriorityClasses != nil {
		t.Error("known before it was listed")
	}
	s.PriorityClasses.Know(true)
	if s.Admission("a").PriorityClasses == nil {
		t.Error("there are none, which is known")
	}
	s.PriorityClasses.Set(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}})
	if s.Admission("a").PriorityClasses["high"] == nil {
		t.Error("there is one")
	}
}

func TestChangesAreToldOnceAfterARead(t *testing.T) {
	calls := 0
	s := objects.New(func() { calls++ })
	expect := func(when string, want int) {
		t.Helper()
		if calls != want {
			t.Errorf("%s: %d calls, want %d", when, calls, want)
		}
	}
	s.Quotas.Know(true)
	s.Quotas.Set(quota("a", "x"))
	expect("nobody has read", 0)
	s.Admission("a")
	s.Quotas.Know(true)
	expect("nothing changed", 0)
	s.Quotas.Set(quota("a", "x"))
	s.Quotas.Set(quota("a", "x"))
	expect("two changes", 1)
	s.Admission("a")
	s.Quotas.Know(false)
	expect("it refuses nothing any more", 2)
}
