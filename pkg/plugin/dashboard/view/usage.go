package view

import (
	"cmp"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/usage"
	"github.com/jobferry/jobferry/pkg/plugin/show"
)

// Since is a time for which the usage is shown.
type Since struct {
	Value, Text string
	For         time.Duration
	Chosen      bool
}

// sinces are the times to choose from; the second is the default.
var sinces = []Since{
	{Value: "24h", Text: "24 hours", For: 24 * time.Hour},
	{Value: "7d", Text: "7 days", For: 7 * 24 * time.Hour},
	{Value: "30d", Text: "30 days", For: 30 * 24 * time.Hour},
}

// maxListed is how many Jobs are listed of those that used something.
const maxListed = 20

// Usage is the page of what Jobs used.
type Usage struct {
	Sinces []Since
	// Jobs is how many have used something.
	Jobs                         int
	ByNamespace, ByWorker, ByJob UsageTable
}

// UsageTable has a row for each namespace, worker or Job, and a column for each resource.
type UsageTable struct {
	// Of is the title of the first column.
	Of        string
	Resources []string
	Rows      []UsageRow
	// Total is of all rows, if there are several.
	Total *UsageRow
	// Omitted resources are those that fewer rows have.
	Omitted int
	// Priced: something has a price.
	Priced bool
}

// maxResources is how many columns a table has. Tenants can make up names of resources.
const maxResources = 20

// UsageRow is what one of them used.
type UsageRow struct {
	Namespace, Name string
	Cells           []UsageCell
	// Cost is empty where nothing has a price.
	Cost string
}

// UsageCell has the hours of one resource.
type UsageCell struct {
	Hours string
	// Repeated is the part of it that was done again elsewhere; empty: nothing was.
	Repeated string
	// Unknown is what may be missing in Hours; empty: nothing may.
	Unknown string
}

// NewUsage makes the page of what Jobs used that run, or ended within the chosen time.
func NewUsage(jobs []*batchv1.Job, workers []*v1alpha1.WorkerCluster, since string, now time.Time) Usage {
	page := Usage{Sinces: slices.Clone(sinces)}
	chosen := slices.IndexFunc(sinces, func(s Since) bool { return s.Value == since })
	if chosen < 0 {
		chosen = 1
	}
	page.Sinces[chosen].Chosen = true
	prices := pricesOf(workers)
	namespaces, ofWorkers, ofJobs := tallies{}, tallies{}, tallies{}
	for _, job := range jobs {
		for _, u := range show.UsedBy(job, now, sinces[chosen].For) {
			cost := u.Cost(prices[u.Worker])
			namespaces.add(rowKey{namespace: job.Namespace}, u, cost)
			ofWorkers.add(rowKey{name: show.Printable(u.Worker)}, u, cost)
			ofJobs.add(rowKey{job.Namespace, job.Name}, u, cost)
		}
	}
	page.Jobs = len(ofJobs)
	page.ByNamespace, page.ByWorker = namespaces.table("Namespace", 0), ofWorkers.table("Worker", 0)
	page.ByJob = ofJobs.table("Job", maxListed)
	return page
}

// usageOf is the table of what one Job used, by worker.
func usageOf(job *batchv1.Job, workers []*v1alpha1.WorkerCluster, now time.Time) UsageTable {
	prices, byWorker := pricesOf(workers), tallies{}
	for _, u := range usage.Read(job).At(now) {
		byWorker.add(rowKey{name: show.Printable(u.Worker)}, u, u.Cost(prices[u.Worker]))
	}
	return byWorker.table("Worker", 0)
}

func pricesOf(workers []*v1alpha1.WorkerCluster) map[string]v1alpha1.Cost {
	prices := map[string]v1alpha1.Cost{}
	for _, w := range workers {
		prices[w.Name] = w.Spec.Cost
	}
	return prices
}

// rowKey names a row: a namespace, a worker or a Job.
type rowKey struct{ namespace, name string }

// tally is what one of them used.
type tally struct {
	resources map[corev1.ResourceName]usage.Usage
	cost      float64
}

func (t *tally) add(u usage.Usage, cost float64) {
	sum := t.resources[u.Resource]
	sum.Total, sum.Repeated, sum.Unknown = sum.Total+u.Total, sum.Repeated+u.Repeated, sum.Unknown+u.Unknown
	t.resources[u.Resource] = sum
	t.cost += cost
}

type tallies map[rowKey]*tally

func (all tallies) add(by rowKey, u usage.Usage, cost float64) {
	if all[by] == nil {
		all[by] = &tally{resources: map[corev1.ResourceName]usage.Usage{}}
	}
	all[by].add(u, cost)
}

// table lists who used something by name, or, with a limit, those who used the most.
func (all tallies) table(of string, limit int) UsageTable {
	sum, rows := tally{resources: map[corev1.ResourceName]usage.Usage{}}, map[corev1.ResourceName]int{}
	for _, t := range all {
		for name, u := range t.resources {
			u.Resource = name
			sum.add(u, 0)
			rows[name]++
		}
		sum.cost += t.cost
	}
	inOrder := func(a, b corev1.ResourceName) int {
		return cmp.Or(cmp.Compare(usageOrder[a], usageOrder[b]), cmp.Compare(a, b))
	}
	names := slices.SortedFunc(maps.Keys(rows), func(a, b corev1.ResourceName) int { return cmp.Or(cmp.Compare(rows[b], rows[a]), inOrder(a, b)) })
	table := UsageTable{Of: of, Priced: sum.cost > 0, Omitted: max(len(names)-maxResources, 0)}
	names = names[:len(names)-table.Omitted]
	slices.SortFunc(names, inOrder)
	for _, name := range names {
		table.Resources = append(table.Resources, show.ResourceTitle(name))
	}
	keys := slices.SortedFunc(maps.Keys(all), func(a, b rowKey) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	if limit > 0 {
		slices.SortStableFunc(keys, func(a, b rowKey) int { return all[b].compare(all[a], names) })
		keys = keys[:min(len(keys), limit)]
	}
	for _, by := range keys {
		table.Rows = append(table.Rows, all[by].row(by, names))
	}
	if limit == 0 && len(all) > 1 {
		total := sum.row(rowKey{name: "All"}, names)
		table.Total = &total
	}
	return table
}

// usageOrder has the columns in the order in which they matter.
var usageOrder = map[corev1.ResourceName]int{corev1.ResourceCPU: -2, corev1.ResourceMemory: -1, corev1.ResourcePods: 1}

// compare is by the cost, then by the resources in order.
func (t *tally) compare(other *tally, names []corev1.ResourceName) int {
	order := cmp.Compare(t.cost, other.cost)
	for _, name := range names {
		order = cmp.Or(order, cmp.Compare(t.resources[name].Total, other.resources[name].Total))
	}
	return order
}

func (t *tally) row(by rowKey, names []corev1.ResourceName) UsageRow {
	row := UsageRow{Namespace: by.namespace, Name: by.name}
	for _, name := range names {
		used := t.resources[name]
		cell := UsageCell{Hours: show.Hours(name, used.Total)}
		if used.Repeated > 0 {
			cell.Repeated = show.Hours(name, used.Repeated)
		}
		if used.Unknown > 0 {
			cell.Unknown = show.Hours(name, used.Unknown)
		}
		row.Cells = append(row.Cells, cell)
	}
	if t.cost > 0 {
		row.Cost = show.Short(t.cost)
	}
	return row
}
