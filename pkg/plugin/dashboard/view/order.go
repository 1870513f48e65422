package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/jobferry/jobferry/pkg/jobview"
)

// Order is how the list of Jobs is sorted. The zero value: what needs attention first, what has
// ended last, and of those in the same state the newest first.
type Order struct {
	// Column is the key of one.
	Column     string
	Descending bool
}

// ParseOrder reads a column's key, after a minus for descending. An unknown one is the zero value.
func ParseOrder(text string) Order {
	key, descending := strings.CutPrefix(text, "-")
	if columnOf(key) == nil {
		return Order{}
	}
	return Order{key, descending}
}

// String is what ParseOrder reads.
func (o Order) String() string {
	if o.Descending {
		return "-" + o.Column
	}
	return o.Column
}

// Column is one of the list of Jobs.
type Column struct {
	Key, Title string
	// Number: it's aligned to the right.
	Number bool
	// Sorted is the value of aria-sort; empty: the list isn't sorted by this column.
	Sorted string
	// Next is the order that a click leads to: ascending, descending, none.
	Next string
}

// sortable is a column with how it's compared.
type sortable struct {
	key, title string
	number     bool
	compare    func(a, b *sorted) int
	// lacks reports whether a Job has no value. Such Jobs come last, in both directions.
	lacks func(*sorted) bool
}

// sorted is a Job with what users see of it.
type sorted struct {
	facts
	*jobview.DispatchedJob
	took time.Duration
}

var columns = []sortable{
	{key: "namespace", title: "Namespace", compare: by(func(j *sorted) string { return j.Namespace })},
	{key: "name", title: "Name", compare: by(func(j *sorted) string { return j.Name })},
	{key: "state", title: "State", compare: by(func(j *sorted) int { return stateRank(j.state) })},
	{key: "worker", title: "Worker", compare: func(a, b *sorted) int { return slices.Compare(a.workers, b.workers) },
		lacks: func(j *sorted) bool { return len(j.workers) == 0 }},
	{key: "succeeded", title: "Succeeded", compare: bySucceeded},
	{key: "active", title: "Active", number: true, compare: by(func(j *sorted) int32 { return j.Status.Active })},
	{key: "failed", title: "Failed", number: true, compare: by(func(j *sorted) int32 { return j.Status.Failed })},
	{key: "duration", title: "Duration", compare: by(func(j *sorted) time.Duration { return j.took }),
		lacks: func(j *sorted) bool { return j.Status.StartTime == nil }},
	{key: "age", title: "Age", compare: func(a, b *sorted) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) }},
	{key: "why", title: "Why", compare: by(func(j *sorted) string { return j.Status.Why }),
		lacks: func(j *sorted) bool { return j.Status.Why == "" }},
}

func by[T cmp.Ordered](value func(*sorted) T) func(a, b *sorted) int {
	return func(a, b *sorted) int { return cmp.Compare(value(a), value(b)) }
}

// bySucceeded is by the part of the completions, then by their number.
func bySucceeded(a, b *sorted) int {
	return cmp.Or(cmp.Compare(percent(&a.Status), percent(&b.Status)), cmp.Compare(a.Status.Succeeded, b.Status.Succeeded))
}

func columnOf(key string) *sortable {
	if at := slices.IndexFunc(columns, func(c sortable) bool { return c.key == key }); at >= 0 {
		return &columns[at]
	}
	return nil
}

// columnsFor lists the columns as the list is sorted now.
func (o Order) columnsFor() []Column {
	list := make([]Column, 0, len(columns))
	for _, c := range columns {
		column := Column{Key: c.key, Title: c.title, Number: c.number, Next: c.key}
		switch {
		case c.key != o.Column:
		case o.Descending:
			column.Sorted, column.Next = "descending", ""
		default:
			column.Sorted, column.Next = "ascending", "-"+c.key
		}
		list = append(list, column)
	}
	return list
}

// orders lists the orders to choose from where there are no columns to click on.
func (o Order) orders() (list []Choice) {
	for _, c := range columns {
		for _, order := range []Order{{c.key, false}, {c.key, true}} {
			text := c.title
			if order.Descending {
				text += ", descending"
			}
			list = append(list, Choice{Value: order.String(), Text: text, Chosen: order == o})
		}
	}
	return list
}

// sort sorts Jobs. Those that are equal stay in the order of the zero value.
func (o Order) sort(jobs []facts, now time.Time) {
	slices.SortFunc(jobs, func(a, b facts) int {
		return cmp.Or(cmp.Compare(stateRank(a.state), stateRank(b.state)),
			b.job.CreationTimestamp.Compare(a.job.CreationTimestamp.Time),
			cmp.Compare(a.job.Namespace, b.job.Namespace), cmp.Compare(a.job.Name, b.job.Name))
	})
	column := columnOf(o.Column)
	if column == nil {
		return
	}
	all := make([]sorted, len(jobs))
	for i, j := range jobs {
		seen := jobview.Of(j.job, j.around)
		took, _ := seen.Took(now)
		all[i] = sorted{j, &seen, took}
	}
	slices.SortStableFunc(all, func(a, b sorted) int { return o.compare(column, &a, &b) })
	for i := range all {
		jobs[i] = all[i].facts
	}
}

func (o Order) compare(column *sortable, a, b *sorted) int {
	if column.lacks != nil {
		switch noA, noB := column.lacks(a), column.lacks(b); {
		case noA && noB:
			return 0
		case noA:
			return 1
		case noB:
			return -1
		}
	}
	if o.Descending {
		return column.compare(b, a)
	}
	return column.compare(a, b)
}
