package view

import (
	"cmp"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// Filter selects Jobs. The zero value selects all.
type Filter struct {
	// Text is in the name, the namespace or a label of the Job.
	Text string
	// Namespace, State and Worker are exact; empty: any.
	Namespace, State, Worker string
}

// Any reports whether the filter leaves something out.
func (f Filter) Any() bool { return f != Filter{} }

// NotPlaced as Filter.Worker selects the Jobs that are on no worker.
const NotPlaced = "none"

// Around says what is known of a Job beside itself.
type Around func(*batchv1.Job) jobview.Around

// facts are what a Job is filtered by.
type facts struct {
	job     *batchv1.Job
	around  jobview.Around
	state   jobview.State
	workers []string
}

func factsOf(job *batchv1.Job, around Around) facts {
	is := around(job)
	return facts{job, is, jobview.StateOf(job, is), shards.WorkersOf(job)}
}

func (f Filter) hasText(job *batchv1.Job) bool {
	text := strings.ToLower(f.Text)
	if strings.Contains(strings.ToLower(job.Namespace+"/"+job.Name), text) {
		return true
	}
	for key, value := range job.Labels {
		if strings.Contains(strings.ToLower(key+"="+value), text) {
			return true
		}
	}
	return false
}

func (f Filter) hasWorker(workers []string) bool {
	return f.Worker == "" || f.Worker == NotPlaced && len(workers) == 0 || slices.Contains(workers, f.Worker)
}

// Choice is a value to filter by, with the number of Jobs that it would leave, or one to sort by,
// with a text.
type Choice struct {
	Value, Text, Tone string
	Count             int
	Chosen            bool
}

// counts has the number of Jobs for each value, of those that the other parts of the filter select.
type counts struct{ namespaces, states, workers map[string]int }

// sift returns what the filter selects, and the counts.
func (f Filter) sift(jobs []*batchv1.Job, around Around) ([]facts, counts) {
	var selected []facts
	n := counts{map[string]int{}, map[string]int{}, map[string]int{}}
	for _, job := range jobs {
		j := factsOf(job, around)
		if !f.hasText(job) {
			continue
		}
		inNamespace := f.Namespace == "" || f.Namespace == job.Namespace
		inState := f.State == "" || f.State == string(j.state)
		onWorker := f.hasWorker(j.workers)
		if inState && onWorker {
			n.namespaces[job.Namespace]++
		}
		if inNamespace && onWorker {
			n.states[string(j.state)]++
		}
		if inNamespace && inState {
			n.countWorkers(j.workers)
		}
		if inNamespace && inState && onWorker {
			selected = append(selected, j)
		}
	}
	return selected, n
}

// maxWorkers is how many workers there are to choose from. Whoever may write the status of Jobs can
// name any number.
const maxWorkers = 2000

func (n counts) countWorkers(workers []string) {
	for _, worker := range workers {
		if n.workers[worker] > 0 || len(n.workers) < maxWorkers {
			n.workers[worker]++
		}
	}
	if len(workers) == 0 {
		n.workers[NotPlaced]++
	}
}

// choices lists values by name; the chosen one is among them even if nothing is left.
func choices(n map[string]int, chosen string) []Choice {
	if _, there := n[chosen]; chosen != "" && !there {
		n[chosen] = 0
	}
	var all []Choice
	for value, count := range n {
		all = append(all, Choice{Value: value, Count: count, Chosen: value == chosen})
	}
	slices.SortFunc(all, func(a, b Choice) int { return cmp.Compare(a.Value, b.Value) })
	return all
}
