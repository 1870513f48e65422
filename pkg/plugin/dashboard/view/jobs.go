package view

import (
	"cmp"
	"regexp"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/plugin/show"
)

// PageSize is how many Jobs a page shows.
const PageSize = 100

// Jobs is one page of the list of Jobs.
type Jobs struct {
	Filter  Filter
	Order   Order
	Columns []Column
	Orders  []Choice
	Rows    []JobRow
	// Total Jobs there are, and Matching of them are selected.
	Total, Matching int
	// Page counts from 1 to Pages. First and Last are the numbers of its rows, from 1.
	Page, Pages, First, Last int
	// The choices of the filter.
	Namespaces, States, Workers []Choice
}

// JobRow is one Job in the list.
type JobRow struct {
	Namespace, Name string
	State           show.Cell
	Workers         []string
	Succeeded       string
	// Percent of the completions; -1: their number isn't fixed.
	Percent int
	Active  int32
	Failed  int32
	Created time.Time
	Took    string
	Why     string
	// Summary is Why without what it says again of each worker.
	Summary string
	// WhyAsAbove: the row above has the same Summary.
	WhyAsAbove bool
	// Stale: a worker is out of touch, so that the counts are those that were seen last.
	Stale        bool
	Started      time.Time
	StillRunning bool
}

// stateRank orders Jobs: what needs attention first, what has ended last.
func stateRank(state jobview.State) int { return slices.Index(jobview.States, state) }

// ListJobs makes a page of the list.
func ListJobs(jobs []*batchv1.Job, filter Filter, order Order, page int, around Around, now time.Time) Jobs {
	selected, n := filter.sift(jobs, around)
	order.sort(selected, now)
	list := Jobs{
		Filter: filter, Order: order, Columns: order.columnsFor(), Orders: order.orders(), Total: len(jobs), Matching: len(selected), Pages: max(1, (len(selected)+PageSize-1)/PageSize),
		Namespaces: choices(n.namespaces, filter.Namespace), States: stateChoices(n.states, filter.State), Workers: choices(n.workers, filter.Worker),
	}
	list.Page = min(max(page, 1), list.Pages)
	start := (list.Page - 1) * PageSize
	end := min(start+PageSize, len(selected))
	list.First, list.Last = min(start+1, end), end
	for i, j := range selected[start:end] {
		list.Rows = append(list.Rows, jobRow(j, now))
		list.Rows[i].WhyAsAbove = i > 0 && list.Rows[i].Summary != "" && list.Rows[i].Summary == list.Rows[i-1].Summary
	}
	return list
}

func jobRow(j facts, now time.Time) JobRow {
	job := jobview.Of(j.job, j.around)
	row := JobRow{
		Namespace: job.Namespace, Name: job.Name, State: show.JobState(job.Status.State), Workers: job.Status.Workers,
		Succeeded: job.Succeeded(), Percent: percent(&job.Status), Active: job.Status.Active, Failed: job.Status.Failed,
		Created: job.CreationTimestamp.Time, Why: job.Status.Why, Summary: summary(job.Status.Why), Stale: isStale(j),
	}
	if took, started := job.Took(now); started {
		row.Took = duration.HumanDuration(took)
	}
	if job.Status.StartTime != nil && job.Status.EndTime == nil {
		row.Started, row.StillRunning = job.Status.StartTime.Time, true
	}
	return row
}

// byWorker is a wait's message that says of each worker at its end what its beginning says of all.
var byWorker = regexp.MustCompile(`^(\d+/\d+ clusters available.*\.) \([-a-z0-9.]+: .*\)$`)

func summary(why string) string { return byWorker.ReplaceAllString(why, "$1") }

// isStale reports whether a worker of an unfinished Job is out of touch.
func isStale(j facts) bool {
	workers := j.around.Workers
	return j.state == jobview.OutOfTouch || workers != nil && !j.state.IsFinal() && slices.ContainsFunc(j.workers, workers.OutOfTouch)
}

// percent of the completions that have succeeded; -1: their number isn't fixed.
func percent(job *jobview.Status) int {
	if job.Completions == nil {
		return -1
	}
	return int(100 * int64(job.Succeeded) / int64(max(*job.Completions, 1)))
}

// stateChoices are in the order of the list, with the tones of the states.
func stateChoices(n map[string]int, chosen string) []Choice {
	all := choices(n, chosen)
	slices.SortStableFunc(all, func(a, b Choice) int {
		return cmp.Compare(stateRank(jobview.State(a.Value)), stateRank(jobview.State(b.Value)))
	})
	for i := range all {
		all[i].Tone = show.JobState(jobview.State(all[i].Value)).Tone
	}
	return all
}
