package scheduling

import (
	"testing"

	"github.com/jobferry/jobferry/pkg/placement/internal/change"
)

// Each plugin that refuses nodes has a row in the table, but for those of which it isn't known what
// helps.
func TestEachPluginSaysWhatHelps(t *testing.T) {
	for _, name := range append([]string{"ResourceQuota", "LimitRanger", "RuntimeClass", "Priority"}, byNearness...) {
		unknown := name == "GangScheduling" || name == autoscaler
		if _, known := helpedBy[name]; known == unknown {
			t.Errorf("%s: %t", name, known)
		}
	}
	for name, kinds := range helpedBy {
		if kinds&change.Nodes == 0 {
			t.Errorf("%s isn't helped by nodes", name)
		}
	}
}

func TestHelpedBy(t *testing.T) {
	of := func(plugins ...string) (reasons []Count) {
		for _, name := range plugins {
			reasons = append(reasons, Count{Reason: Reason{Plugin: name}})
		}
		return reasons
	}
	for _, c := range []struct {
		name   string
		answer Answer
		in     Snapshot
		want   change.Kinds
	}{
		{"room", Answer{Verdict: FitsLater, Reasons: of("NodeResourcesFit", "TaintToleration")}, Snapshot{}, change.Room | change.Nodes},
		{"either of two", Answer{Verdict: FitsLater, Reasons: of("NodeResourcesFit", "DynamicResources")}, Snapshot{}, change.Room | change.Nodes | change.Devices},
		{"larger nodes", Answer{Verdict: Never, Reasons: of("NodeResourcesFit")}, Snapshot{}, change.Nodes},
		{"quota", Answer{Verdict: FitsLater, Reasons: of("ResourceQuota")}, Snapshot{}, change.Nodes | change.Admission},
		{"an unknown plugin", Answer{Verdict: FitsLater, Reasons: of("NodeResourcesFit", "GangScheduling")}, Snapshot{}, change.All},
		{"no reason", Answer{Verdict: Never}, Snapshot{}, change.All},
		{"whatever preempts", Answer{Verdict: FitsLater, Reasons: of("NodeResourcesFit")}, Snapshot{Preemption: true}, change.All},
		{"what is being listed", Answer{Verdict: FitsLater, Reasons: of("VolumeBinding")}, Snapshot{Listing: &Reason{}}, change.All},
	} {
		if got := c.answer.HelpedBy(&c.in); got != c.want {
			t.Errorf("%s: %b, want %b", c.name, got, c.want)
		}
	}
}
