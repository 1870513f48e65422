package show

import (
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/jobview"
)

// JobColumns are the optional columns of Jobs.
type JobColumns struct {
	Namespace, Wide bool
	// Line has the places of Jobs that wait for room.
	Line map[types.NamespacedName]v1alpha1.WaitingExplanation
}

// Jobs is the table of hub Jobs, given what is known of each beside itself.
func Jobs(jobs []batchv1.Job, around func(*batchv1.Job) jobview.Around, now time.Time, columns JobColumns) Table {
	t := Table{}
	if columns.Namespace {
		t.Header = append(t.Header, "NAMESPACE")
	}
	for _, c := range jobview.Columns {
		if columns.Wide || !c.Wide {
			t.Header = append(t.Header, strings.ToUpper(c.Name))
		}
	}
	for i := range jobs {
		job := jobview.Of(&jobs[i], around(&jobs[i]))
		place, waits := columns.Line[types.NamespacedName{Namespace: job.Namespace, Name: job.Name}]
		if waits && job.Status.State == jobview.Pending {
			job.Status.Why = strings.TrimSuffix("In line: "+InLine(&place, now)+". "+job.Status.Why, " ")
		}
		t.Rows = append(t.Rows, jobRow(&job, now, columns))
	}
	return t
}

// SeenWorkers are jobview's Workers.
func SeenWorkers(workers []v1alpha1.WorkerCluster) jobview.Workers {
	all := make([]*v1alpha1.WorkerCluster, len(workers))
	for i := range workers {
		all[i] = &workers[i]
	}
	return jobview.WorkersAmong(all)
}

func jobRow(job *jobview.DispatchedJob, now time.Time, columns JobColumns) []Cell {
	var cells []Cell
	if columns.Namespace {
		cells = row(job.Namespace)
	}
	for _, c := range jobview.Columns {
		switch {
		case c.Wide && !columns.Wide:
		case c.Name == "State":
			cells = append(cells, JobState(job.Status.State))
		default:
			cells = append(cells, row(c.Cell(job, now))...)
		}
	}
	return cells
}

// stateTones are the tones of a Job's states.
var stateTones = map[jobview.State]string{
	jobview.Complete: toneGood, jobview.Completing: toneGood,
	jobview.Failed: toneBad, jobview.Failing: toneBad,
	jobview.OutOfTouch: toneBad,
	jobview.BackingOff: toneWarn, jobview.Moving: toneWarn, jobview.Pending: toneWarn, jobview.Starting: toneWarn, jobview.Deleting: toneWarn,
	jobview.Suspending: toneFaint, jobview.Suspended: toneFaint, jobview.Paused: toneFaint, jobview.Running: tonePlain,
}

// JobState is the state of a hub Job.
func JobState(s jobview.State) Cell { return Cell{string(s), stateTones[s]} }
