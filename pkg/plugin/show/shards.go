package show

import (
	"cmp"
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/intervals"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// writeShards writes how a Job is divided, if it may be.
func (d Description) writeShards(b *strings.Builder, p Palette) {
	if !shards.IsPlaced(d.Job) {
		return
	}
	b.WriteString("\nShards:\n")
	placement, err := shards.Read(d.Job)
	if err != nil {
		fmt.Fprintf(b, "  They can't be read: %s\n", oneLine(err.Error()))
		return
	}
	_ = indented(b, d.shards(placement), p) // a strings.Builder never fails
	if free := placement.Unassigned(d.Job); free.Len() > 0 && !mirror.Finished(d.Job) {
		fmt.Fprintf(b, "  Unassigned until there is room, or a shard ends: %s\n", amountText(d.Job, free))
	}
}

func (d Description) shards(placement shards.Placement) Table {
	t := Table{Header: []string{"WORKER", "INDEXES", "COMPLETED", "FAILED", "LEFT", "FAILED PODS", "PARALLELISM", "ACTIVE", "READY", "STATE"}}
	if !shards.Indexed(d.Job) {
		t.Header[1] = "COMPLETIONS"
	}
	completed := intervals.ParseLenient(d.Job.Status.CompletedIndexes, intervals.NoLimit)
	failed := intervals.ParseLenient(ptr.Deref(d.Job.Status.FailedIndexes, ""), intervals.NoLimit)
	for _, s := range placement.Shards {
		var active, ready *int32
		if m := d.Mirrors[s.Worker]; m != nil {
			active, ready = &m.Status.Active, m.Status.Ready
		}
		t.Rows = append(t.Rows, row(s.Worker, cmp.Or(shorten(s.String()), none),
			int(s.Succeeded)+s.Indexes.Intersect(completed).Len(), s.Indexes.Intersect(failed).Len(), shards.Remaining(d.Job, s).Len(),
			s.Failed, s.Parallelism, active, ready, shardState(s)))
	}
	return t
}

// shardState is what changes about a shard.
func shardState(s shards.Shard) Cell {
	switch {
	case s.Stopping:
		return Cell{"stopping", toneWarn}
	case s.Returning != "":
		return Cell{"returning " + shorten(s.Returning), toneWarn}
	default:
		return Cell{Text: none}
	}
}

// amountText is a number with its noun.
func amountText(job *batchv1.Job, a shards.Amount) string {
	switch n := a.Len(); {
	case shards.Indexed(job) && n == 1:
		return "index " + a.String()
	case shards.Indexed(job):
		return fmt.Sprintf("%d indexes (%s)", n, shorten(a.String()))
	case n == 1:
		return "1 completion"
	default:
		return fmt.Sprintf("%d completions", n)
	}
}

// shorten cuts a long set of indexes.
func shorten(indexes string) string {
	const longest = 40
	if len(indexes) <= longest {
		return indexes
	}
	return indexes[:strings.LastIndexByte(indexes[:longest], ',')+1] + "..."
}
