package worker

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// An adopted Pod is taken as it was then, until the cache shows it so, or doesn't show it any more.
func TestAdoptedPodsArePending(t *testing.T) {
	version := func(v string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.ResourceVersion = v } }
	for name, row := range map[string]struct {
		cached []*corev1.Pod
		want   bool
	}{
		"the cache is older": {[]*corev1.Pod{aPod("a", version("9"))}, true},
		"it shows it":        {[]*corev1.Pod{aPod("a", version("10"))}, false},
		"it's newer":         {[]*corev1.Pod{aPod("a", version("11"))}, false},
		"the Pod is gone":    {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newMemory().of(aJob())
			p.note(p.untracked, "a")
			p.noteAdopted(aPod("a", version("10")))
			p.observe(row.cached)
			writes := p.writes()
			if writes.Untracked.Has("a") || (writes.Adopted["a"] != nil) != row.want {
				t.Errorf("pending: %+v", writes)
			}
		})
	}
}

// A Pod without a controller is shown to the Jobs that may adopt it. Of the others, however many
// there are, none is looked at that selects its Pods by its UID.
func TestAdopters(t *testing.T) {
	m := newMemory()
	uid := "uid-"
	see := func(namespace, name string, selector map[string]string) types.NamespacedName {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid + name)}}
		job.Spec.Selector = &metav1.LabelSelector{MatchLabels: selector}
		m.of(job)
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	byUID := func(name string) map[string]string {
		return map[string]string{batchv1.ControllerUidLabel: "uid-" + name}
	}
	for i := range 1000 {
		name := fmt.Sprint("many-", i)
		see("tenant", name, byUID(name))
	}
	generated, manual, other := see("team", "generated", byUID("generated")), see("team", "manual", map[string]string{"app": "a"}), see("team", "other", map[string]string{"app": "b"})
	if looked := len(m.manual["tenant"]) + len(m.manual["team"]); looked != 2 {
		t.Errorf("%d Jobs are looked at for each Pod", looked)
	}
	adopters := func(namespace string, labels map[string]string) []types.NamespacedName {
		return m.adopters(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: labels}})
	}
	for name, row := range map[string]struct {
		got  []types.NamespacedName
		want []types.NamespacedName
	}{
		"by the Job's UID":    {adopters("team", byUID("generated")), []types.NamespacedName{generated}},
		"elsewhere":           {adopters("tenant", byUID("generated")), nil},
		"by a label":          {adopters("team", map[string]string{"app": "a"}), []types.NamespacedName{manual}},
		"without labels":      {adopters("team", nil), nil},
		"of nobody":           {adopters("team", map[string]string{"app": "c"}), nil},
		"by a UID of no Job":  {adopters("team", byUID("nobody")), nil},
		"by another's labels": {adopters("team", map[string]string{"app": "b", "x": "y"}), []types.NamespacedName{other}},
	} {
		if !slices.Equal(row.got, row.want) {
			t.Errorf("%s: %v, want %v", name, row.got, row.want)
		}
	}
	for i := range 10 * maxAdopters {
		see("tenant", fmt.Sprint("same-", i), map[string]string{"app": "a"})
	}
	if got := adopters("tenant", map[string]string{"app": "a"}); len(got) != maxAdopters {
		t.Errorf("a Pod is shown to %d Jobs with one selector", len(got))
	}
	uid = "next-"
	see("team", "generated", map[string]string{"app": "a"}) // made anew, with a selector of its own
	if got := adopters("team", byUID("generated")); len(got) > 0 {
		t.Errorf("the earlier Job adopts: %v", got)
	}
	for key := range maps.Clone(m.jobs) {
		m.forget(key)
	}
	if len(m.jobs)+len(m.byUID)+len(m.manual) > 0 {
		t.Errorf("left: %v", m)
	}
}
