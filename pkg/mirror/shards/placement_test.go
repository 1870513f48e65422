package shards

import (
	"math"
	"testing"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
)

// A Job is resumed with less parallelism than it had: what its mirrors are to run adds up to that,
// before anything was divided anew.
func TestReadLowersTheParts(t *testing.T) {
	for _, row := range []struct {
		parallelism int32
		parts, want []int32
	}{
		{8, []int32{4, 4}, []int32{4, 4}},
		{9, []int32{4, 4}, []int32{4, 4}},
		{3, []int32{4, 4}, []int32{1, 2}},
		{1, []int32{1, 1, 1}, []int32{0, 0, 1}},
		{0, []int32{3, 2}, []int32{0, 0}},
		{math.MaxInt32, []int32{math.MaxInt32, 0, math.MaxInt32, math.MaxInt32}, []int32{715827882, 0, 715827882, 715827883}},
	} {
		job := aJob(100, row.parallelism, true, "")
		var placement Placement
		for i, part := range row.parts {
			placement.Shards = append(placement.Shards, Shard{Worker: string(rune('a' + i)), State: State{Parallelism: part}})
		}
		hubstate.Set(job, placement.Kept())
		read, err := Read(job)
		if err != nil {
			t.Fatal(err)
		}
		for i, shard := range read.Shards {
			if shard.Parallelism != row.want[i] {
				t.Errorf("parallelism %d, parts %v: %+v, want %v", row.parallelism, row.parts, read.Shards, row.want)
				break
			}
		}
	}
}
