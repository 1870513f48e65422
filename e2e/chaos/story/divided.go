package story

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// The kinds that may run on several workers at once.

// wide is a parallelism that no single worker of the fleet has room for: a node takes two Pods of
// cpuOfWide, and a worker has four nodes.
const (
	wide      = 9
	cpuOfWide = "250"
)

// wideJob makes a Job that has to be divided. Some may run on two workers only.
func (d *draft) wideJob(runFor time.Duration, options ...option) *batchv1.Job {
	limit := v1alpha1.MaxClustersAll
	if d.between(0, 2) == 0 {
		limit = "2"
	}
	return d.job(runFor, append(options, maxClusters(limit), cpu(cpuOfWide))...)
}

func (d *draft) wideIndexes() option { return indexes(d.between(wide, wide+5), wide) }

func divided(d *draft) Story {
	return Story{Job: d.wideJob(d.seconds(1, 6), d.wideIndexes()), End: complete}
}

func dividedCounted(d *draft) Story {
	return Story{Job: d.wideJob(d.seconds(1, 6), completions(d.between(wide, wide+5)), parallelism(wide)), End: complete}
}

func dividedPerIndex(d *draft) Story {
	bad := d.between(0, wide)
	job := d.wideJob(d.seconds(1, 4), indexes(wide+1, wide), label(rig.LabelFailIndexes, fmt.Sprint(bad)), backoffLimitPerIndex(0))
	return Story{Job: job, End: failedIndex(bad, wide)}
}

func dividedMaxFailed(d *draft) Story {
	return tooManyFail(d.wideJob(d.seconds(1, 3), d.wideIndexes()))
}

func dividedSuccessPolicy(d *draft) Story {
	return suffices(d.wideJob(d.seconds(1, 4), d.wideIndexes()), d.between(1, 4))
}

func dividedHalted(d *draft) Story {
	return Story{
		Job:  d.wideJob(d.seconds(2, 5), d.wideIndexes()),
		Acts: []Act{{After: d.seconds(1, 6), Deed: Suspend}, {After: d.seconds(2, 8), Deed: Resume}},
		End:  complete,
	}
}

func dividedScaled(d *draft) Story {
	return Story{
		Job:  d.wideJob(d.seconds(2, 4), d.wideIndexes()),
		Acts: []Act{{After: d.seconds(1, 4), Deed: Scale, Value: d.between(1, 4)}, {After: d.seconds(1, 4), Deed: Scale, Value: wide}},
		End:  complete,
	}
}

// dividedReselected leaves one of its workers.
func dividedReselected(d *draft) Story {
	return Story{
		Job:  d.wideJob(d.seconds(2, 5), d.wideIndexes()),
		Acts: []Act{{After: d.seconds(1, 6), Deed: Reselect}},
		End:  complete,
	}
}
