package shards

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/intervals"
	"github.com/jobferry/jobferry/pkg/mirror/mirrortest"
	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// A Job that names very many workers isn't divided: each would be looked for in all others.
func TestVeryManyShards(t *testing.T) {
	text := &strings.Builder{}
	for i := range maxShards {
		fmt.Fprintf(text, "w%d=%d;", i, i)
	}
	job := mirrortest.New("job").Indexed(maxShards + 1).Obj()
	hubstate.Set(job, hubstate.Changes{hubstate.ShardsState: "{}", hubstate.Shards: strings.TrimSuffix(text.String(), ";")})
	if p, err := Read(job); err != nil || len(p.Shards) != maxShards || len(WorkersOf(job)) != maxShards {
		t.Errorf("%d shards in %d workers, %v", len(p.Shards), len(WorkersOf(job)), err)
	}
	hubstate.Set(job, hubstate.Changes{hubstate.Shards: text.String() + "w=7000"})
	if _, err := Read(job); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Error(err)
	}
	if n := len(WorkersOf(job)); n > 0 {
		t.Errorf("it's in %d workers", n)
	}
}

func FuzzCost(f *testing.F) {
	f.Add("a=0", ";a=1", "")
	f.Add("a=0", ",2,4,6", "")
	f.Add(`{"shards":{"a":{}`, `,"a":{}`, "}}")
	f.Add("", "[", "")
	costtest.Check(f, 64<<10, 100, func(text string) {
		job := mirrortest.New("job").Indexed(10).Obj()
		hubstate.Set(job, hubstate.Changes{hubstate.ShardsState: "{}", hubstate.Shards: text})
		_, _ = Read(job) // whatever it is
		hubstate.Set(job, hubstate.Changes{hubstate.ShardsState: text, hubstate.Shards: "a=0"})
		_, _ = Read(job)
	})
}

// Very many shards, of which each has some of very many ranges, take little more than one that has
// all of them.
func TestManyRangesInManyShards(t *testing.T) {
	const each = 50
	job := mirrortest.New("job").Indexed(2 * each * maxShards).Obj()
	var p Placement
	var mirrors, following []Mirror
	for i := range maxShards {
		var indexes []int
		for n := range each {
			indexes = append(indexes, 2*(n*maxShards+i))
		}
		shard := Shard{Worker: fmt.Sprint("w", i), Amount: Amount{Indexes: intervals.Of(indexes...)}}
		m := mirrortest.New("job").Indexed(2 * each * maxShards).Obj()
		m.Annotations = map[string]string{v1alpha1.AnnotationIndexes: shard.String()}
		m.Status.CompletedIndexes = shard.String()
		p.Shards, mirrors = append(p.Shards, shard), append(mirrors, Mirror{Shard: shard, Job: m})
		m = m.DeepCopy()
		m.Annotations[v1alpha1.AnnotationIndexesObserved] = shard.String()
		m.Spec.ManagedBy = ptr.To(v1alpha1.ManagedByWorker)
		following = append(following, Mirror{Shard: shard, Job: m})
	}
	adopt := func(mirrors []Mirror) {
		if _, adopted := (Placement{}).Adopt(job, mirrors); len(adopted) != maxShards {
			t.Errorf("%d shards were adopted", len(adopted))
		}
	}
	for name, do := range map[string]func(){
		"Divide":                  func() { Divide(job, p, nil, NoLimit) },
		"Combine":                 func() { Combine(job, Counters{}, mirrors, time.Now()) },
		"Adopt":                   func() { adopt(mirrors) },
		"Adopt of elastic shards": func() { adopt(following) },
	} {
		if cost := costtest.Of(do); cost > 64<<20 {
			t.Errorf("%s allocates %d MiB", name, cost>>20)
		}
	}
}
