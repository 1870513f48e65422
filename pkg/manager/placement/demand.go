package placement

import (
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
)

// PodsWanted is how many Pods a Job would run at once if it ran now: its parallelism, but no more
// than the completions that its status leaves. A Job that is suspended counts as if it were
// resumed.
func PodsWanted(job *batchv1.Job) int64 {
	parallelism := int64(1)
	if job.Spec.Parallelism != nil {
		parallelism = int64(*job.Spec.Parallelism)
	}
	if job.Spec.Completions == nil {
		return max(parallelism, 0)
	}
	left := int64(*job.Spec.Completions) - int64(job.Status.Succeeded)
	if job.Status.FailedIndexes != nil {
		left -= indexes(*job.Status.FailedIndexes)
	}
	return max(min(parallelism, left), 0)
}

// indexes counts the members of a list of intervals such as "1,3-5". What isn't one counts nothing:
// placement would rather look for room that isn't needed.
func indexes(list string) int64 {
	var n int64
	for interval := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(interval, "-")
		from, err := strconv.ParseInt(first, 10, 32)
		if err != nil {
			continue
		}
		to := from
		if isRange {
			if to, err = strconv.ParseInt(last, 10, 32); err != nil {
				continue
			}
		}
		n += max(to-from+1, 0)
	}
	return n
}
