package placement_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/placement"
	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
)

func TestPodsWanted(t *testing.T) {
	tests := []struct {
		name string
		job  *JobBuilder
		want int64
	}{
		{"one Pod", NewJob("j"), 1},
		{"parallelism left out", NewJob("j").With(func(j *batchv1.Job) { j.Spec.Parallelism = nil }), 1},
		{"all at once", NewJob("j").Pods(5), 5},
		{"few at once", NewJob("j").Pods(5).Parallelism(2), 2},
		{"no more than there is to do", NewJob("j").Pods(5).Parallelism(9), 5},
		{"some done", NewJob("j").Pods(5).Parallelism(4).Succeeded(3), 2},
		{"all done", NewJob("j").Pods(5).Succeeded(5), 0},
		{"more done than asked for", NewJob("j").Pods(5).Succeeded(6), 0},
		{"failed indexes aren't run again", NewJob("j").Pods(9).Succeeded(2).FailedIndexes("0,3-5"), 3},
		{"no failed indexes", NewJob("j").Pods(9).FailedIndexes(""), 9},
		{"indexes that can't be read", NewJob("j").Pods(9).FailedIndexes("x,1-y,5-3,7"), 8},
		{"parallelism zero", NewJob("j").Parallelism(0), 0},
		{"work queue", NewJob("j").WorkQueue().Parallelism(7).Succeeded(3), 7},
		{"work queue, parallelism zero", NewJob("j").WorkQueue().Parallelism(0), 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := placement.PodsWanted(test.job.Obj()); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}
