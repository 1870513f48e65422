package worker

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
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
			p := (&memory{jobs: map[types.NamespacedName]*pending{}}).of(aJob())
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
