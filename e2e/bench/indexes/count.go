package indexes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jobferry/jobferry/pkg/mirror/intervals"
)

const (
	maxStories = 5
	clock      = "15:04:05.000"
)

// Counts are those of all indexes of a Job.
type Counts struct {
	// Indexes that the Job has, and Pods that were seen of them.
	Indexes, Pods int
	// Runs is how many indexes had so many Pods.
	Runs map[int]int
	// Once are the indexes that completed exactly once.
	Once int
	// InLost are those that a lost cluster completed, which the hub couldn't know, and that
	// completed exactly once elsewhere.
	InLost int
	// Never are those that didn't complete, and Again those that completed more often than they may.
	Never, Again intervals.Set
	// Stories tell of the first of those in Again and Together what their Pods did.
	Stories []string
	// Together are those that had Pods in two clusters at the same time.
	Together intervals.Set
	// Strange is the number of Pods with an index that the Job doesn't have.
	Strange int
}

// Exact reports whether each index completed exactly once, what lost clusters completed apart, and
// none ran in two clusters at the same time.
func (c *Counts) Exact() bool {
	return c.Once+c.InLost == c.Indexes && len(c.Again) == 0 && len(c.Together) == 0 && c.Strange == 0
}

// Count counts the indexes of a Job of n.
func (r *Record) Count(n int) Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := Counts{Indexes: n, Pods: len(r.pods), Runs: map[int]int{}}
	pods := make([][]*course, n)
	for _, c := range r.pods {
		if c.index < 0 || c.index >= n {
			counts.Strange++
			continue
		}
		pods[c.index] = append(pods[c.index], c)
	}
	var never, again, together []int
	for index, all := range pods {
		counts.Runs[len(all)]++
		known, unknown := r.completions(index, all)
		isTogether := atOnce(all)
		if isTogether {
			together = append(together, index)
		}
		if (isTogether || known > 1 || unknown > 1) && len(counts.Stories) < maxStories {
			counts.Stories = append(counts.Stories, story(index, all))
		}
		switch {
		case known > 1 || unknown > 1:
			again = append(again, index)
		case known+unknown == 0:
			never = append(never, index)
		case known+unknown == 1:
			counts.Once++
		default:
			counts.InLost++
		}
	}
	counts.Never, counts.Again, counts.Together = intervals.Of(never...), intervals.Of(again...), intervals.Of(together...)
	return counts
}

// story tells what the Pods of an index did.
func story(index int, pods []*course) string {
	var all []string
	for _, c := range pods {
		what := "failed"
		switch {
		case c.succeeded:
			what = "succeeded"
		case !c.ended:
			what = "was deleted"
		}
		all = append(all, fmt.Sprintf("in %s from %s, %s at %s", c.cluster, c.from.Format(clock), what, c.to.Format(clock)))
	}
	slices.Sort(all)
	return fmt.Sprintf("index %d: %s", index, strings.Join(all, "; "))
}

// completions counts the Pods of an index that succeeded, and apart those in lost clusters that the
// hub couldn't know.
func (r *Record) completions(index int, pods []*course) (known, unknown int) {
	crossed := 0
	for _, c := range pods {
		shown, lost := r.shown[c.cluster]
		switch {
		case !c.succeeded:
		case lost && !shown.Has(index):
			unknown++
		case c.crossed:
			crossed++
		default:
			known++
		}
	}
	if known == 0 { // one of them counts
		known = min(crossed, 1)
	}
	return known, unknown
}

// atOnce reports whether two of the Pods were there at the same time, in different clusters.
func atOnce(pods []*course) bool {
	for i, a := range pods {
		for _, b := range pods[:i] {
			apart := !a.to.IsZero() && !b.from.Before(a.to) || !b.to.IsZero() && !a.from.Before(b.to)
			if a.cluster != b.cluster && !apart {
				return true
			}
		}
	}
	return false
}
