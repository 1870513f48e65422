package table

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Answer is whether a feature works.
type Answer string

const (
	// Yes means that its tests have passed.
	Yes Answer = "yes"
	// No means that they haven't.
	No Answer = "no"
	// Untried means that there was nothing to try, or nobody tried. The cell says why.
	Untried Answer = "untried"
)

// Cell is a feature's answer for one pair.
type Cell struct {
	Answer Answer
	// Reason of what isn't Yes.
	Reason string
}

// Pair is a hub and its workers, by their Kubernetes releases.
type Pair struct{ Hub, Worker string }

// Row is a feature.
type Row struct {
	Feature string
	Cells   map[Pair]Cell
}

// Table is everything that is known.
type Table struct {
	// Hubs and Workers are the releases, in the order in which they are shown.
	Hubs, Workers []string
	// Patches are the exact versions of the releases.
	Patches map[string]string
	Rows    []Row
	// Tested are the versions of Jobferry that the results are of.
	Tested []string
	// From and To are when the first test started and when the last one ended.
	From, To time.Time
}

// Cell is what a feature's row says about a pair. What it says nothing about is Untried.
func (r Row) Cell(p Pair) Cell {
	if c, ok := r.Cells[p]; ok {
		return c
	}
	return Cell{Answer: Untried, Reason: "not run"}
}

// Failed counts the cells that say no.
func (t *Table) Failed() int { return t.count(No) }

func (t *Table) count(a Answer) int {
	n := 0
	for _, r := range t.Rows {
		for _, hub := range t.Hubs {
			for _, worker := range t.Workers {
				if r.Cell(Pair{hub, worker}).Answer == a {
					n++
				}
			}
		}
	}
	return n
}

// Add takes the time and the version of a run into the table.
func (t *Table) Add(o *Outcome) {
	if t.From.IsZero() || o.From.Before(t.From) {
		t.From = o.From
	}
	if o.To.After(t.To) {
		t.To = o.To
	}
	if !slices.Contains(t.Tested, o.Version) {
		t.Tested = append(t.Tested, o.Version)
	}
}

// Command is what makes this table.
func (t *Table) Command() string {
	return fmt.Sprintf("make matrix HUB=%q WORKER=%q", strings.Join(t.Hubs, " "), strings.Join(t.Workers, " "))
}
