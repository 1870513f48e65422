package shards

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/text"
)

const (
	// explained is how many workers Explain names in each list.
	explained = 8
	// longAmount is the longest text of an amount in it.
	longAmount = 40
)

// Explain says in one line why a Job is divided so, why not further, and what waits.
func Explain(job *batchv1.Job, placement Placement, rooms []Room) string {
	limit, err := MaxClusters(job)
	if err != nil {
		limit = 1
	}
	d := newDivision(job, placement, rooms, limit)
	missing := d.countMissing()
	sentences := []string{d.explainShards()}
	if waits := d.unassigned.Len(); waits > 0 && missing > 0 {
		sentences = append(sentences, fmt.Sprintf("%s for room: %d more Pods could run at once", d.wait(waits), missing))
	} else if waits > 0 {
		sentences = append(sentences, d.wait(waits)+" for the next shard that ends")
	}
	if missing > 0 && len(placement.Shards) >= limit {
		sentences = append(sentences, v1alpha1.AnnotationMaxClusters+" allows no more workers")
	}
	return text.Clean(strings.Join(append(sentences, d.explainOthers(missing)...), ". "), text.MaxMessage)
}

func (d *division) wait(n int) string {
	one, many := "completion waits", "completions wait"
	if d.indexed {
		one, many = "index waits", "indexes wait"
	}
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func (d *division) explainShards() string {
	var all []string
	for _, w := range d.workers {
		if !w.isNew {
			all = append(all, w.explain())
		}
	}
	slices.Sort(all)
	switch len(all) {
	case 0:
		return "On no worker"
	case 1:
		return "On 1 worker: " + all[0]
	default:
		return fmt.Sprintf("Divided over %d workers: %s", len(all), list(all, "; "))
	}
}

// explain describes a worker's shard.
func (w *worker) explain() string {
	amount, state := w.String(), fmt.Sprintf("%d Pods at once", w.Parallelism)
	switch {
	case w.Len() == 0:
		amount = "nothing"
	case len(amount) > longAmount:
		amount = fmt.Sprintf("%d indexes from %d on", w.Len(), w.Indexes.First(1)[0])
	}
	switch n := w.returning.Len(); {
	case w.Stopping:
		state = "stopping"
	case n > 0:
		state = fmt.Sprintf("%s, asked to give back %d", state, n)
	}
	return fmt.Sprintf("%s %s (%s)", w.Worker, amount, state)
}

// explainOthers says why the workers without a shard have none.
func (d *division) explainOthers(missing int) []string {
	var spare, full, closed []string
	for _, w := range d.workers {
		switch {
		case !w.isNew:
		case !w.room.Open:
			closed = append(closed, w.Worker)
		case w.room.Pods == 0:
			full = append(full, w.Worker)
		default:
			spare = append(spare, w.Worker)
		}
	}
	var all []string
	for _, reason := range []struct {
		text    string
		workers []string
		applies bool
	}{
		{"Not needed: ", spare, missing == 0},
		{"No room: ", full, true},
		{"Takes no new Pods: ", closed, true},
	} {
		if reason.applies && len(reason.workers) > 0 {
			all = append(all, reason.text+list(reason.workers, ", "))
		}
	}
	return all
}

// list joins the first texts, and says how many more there are.
func list(all []string, separator string) string {
	if more := len(all) - explained; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:explained], separator), more)
	}
	return strings.Join(all, separator)
}
