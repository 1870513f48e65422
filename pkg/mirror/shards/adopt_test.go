package shards

import (
	"math"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// ofShard is the mirror of a shard, as its worker has it.
func ofShard(hub *batchv1.Job, worker, amount string, parallelism int32) Mirror {
	m := hub.DeepCopy()
	m.Annotations = map[string]string{v1alpha1.AnnotationIndexes: amount}
	m.Spec.Parallelism = ptr.To(parallelism)
	return Mirror{Shard: Shard{Worker: worker}, Job: m}
}

func TestAdopt(t *testing.T) {
	hub := aJob(20, 9, true, "")
	tests := map[string]struct {
		mirrors []Mirror
		want    string
	}{
		"as they were":       {[]Mirror{ofShard(hub, "a", "0-9", 5), ofShard(hub, "b", "10-19", 4)}, "a 0-9 (5); b 10-19 (4)"},
		"of different times": {[]Mirror{ofShard(hub, "a", "0-9", 6), ofShard(hub, "b", "10-14", 5)}, "a 0-9 (4); b 10-14 (5)"},
		"a worker that lies takes no more than others with the whole": {
			[]Mirror{ofShard(hub, "a", "0-9", 9), ofShard(hub, "b", "10-19", math.MaxInt32)}, "a 0-9 (4); b 10-19 (5)"},
		"a worker that lies takes no less than nothing": {
			[]Mirror{ofShard(hub, "a", "0-9", math.MinInt32), ofShard(hub, "b", "10-19", 9)}, "a 0-9 (0); b 10-19 (9)"},
		"the same indexes": {[]Mirror{ofShard(hub, "a", "0-9", 4), ofShard(hub, "b", "9-19", 4)}, "a 0-9 (4)"},
		"no indexes":       {[]Mirror{ofShard(hub, "a", "", 4), ofShard(hub, "b", "x", 4)}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, adopted := Placement{}.Adopt(hub, test.mirrors)
			if got := show(p, true); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
			if len(adopted) != len(p.Shards) {
				t.Errorf("adopted: %v", adopted)
			}
			placed := hub.DeepCopy()
			hubstate.Set(placed, p.Kept())
			if _, err := Read(placed); err != nil {
				t.Errorf("it can't be read again: %v", err)
			}
		})
	}
}
