package plan

import (
	"slices"
	"strconv"
	"strings"
)

// Interval is a range of completion indexes, both ends included.
type Interval struct {
	First, Last int
}

// Intervals is a set of completion indexes.
//
// Invariant: the intervals are in increasing order and no two of them touch, so a set has exactly
// one representation. Its text form is the one of status.completedIndexes: "0,2-5,7,8" (runs of
// three or more use a dash).
type Intervals []Interval

// ParseIntervals reads the text form and drops every index that is not below limit. Parts that
// can't be read are left out: status is written by controllers only, and a Job must go on even if
// it was damaged.
func ParseIntervals(text string, limit int) Intervals {
	var parsed Intervals
	if text == "" {
		return nil
	}
	for part := range strings.SplitSeq(text, ",") {
		iv, ok := parseInterval(part)
		if !ok || iv.First >= limit {
			continue
		}
		iv.Last = min(iv.Last, limit-1)
		parsed = append(parsed, iv)
	}
	return normalize(parsed)
}

func parseInterval(part string) (Interval, bool) {
	first, last, isRange := strings.Cut(part, "-")
	if !isRange {
		last = first
	}
	from, err := strconv.Atoi(first)
	if err != nil {
		return Interval{}, false
	}
	to, err := strconv.Atoi(last)
	if err != nil || from < 0 || to < from {
		return Interval{}, false
	}
	return Interval{from, to}, true
}

// IntervalsOf is the set of the given indexes, in any order.
func IntervalsOf(indexes ...int) Intervals {
	all := make(Intervals, len(indexes))
	for i, index := range indexes {
		all[i] = Interval{index, index}
	}
	return normalize(all)
}

// Union is the set of the indexes that are in a or in b.
func (a Intervals) Union(b Intervals) Intervals {
	return normalize(slices.Concat(a, b))
}

// normalize sorts the intervals and joins those that overlap or touch. It may reuse the memory of
// its argument.
func normalize(all Intervals) Intervals {
	slices.SortFunc(all, func(x, y Interval) int { return x.First - y.First })
	out := all[:0]
	for _, iv := range all {
		if n := len(out); n > 0 && iv.First <= out[n-1].Last+1 {
			out[n-1].Last = max(out[n-1].Last, iv.Last)
			continue
		}
		out = append(out, iv)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// Has tells whether the index is in the set.
func (a Intervals) Has(index int) bool {
	at, found := slices.BinarySearchFunc(a, index, func(iv Interval, index int) int { return iv.First - index })
	return found || at > 0 && index <= a[at-1].Last
}

// Len is the number of indexes in the set.
func (a Intervals) Len() int {
	n := 0
	for _, iv := range a {
		n += iv.Last - iv.First + 1
	}
	return n
}

// Overlap is the number of indexes that are in both sets.
func (a Intervals) Overlap(b Intervals) int {
	n, i, j := 0, 0, 0
	for i < len(a) && j < len(b) {
		n += max(0, min(a[i].Last, b[j].Last)-max(a[i].First, b[j].First)+1)
		if a[i].Last < b[j].Last {
			i++
		} else {
			j++
		}
	}
	return n
}

// FirstMissing is up to count of the lowest indexes below limit that are not in the set. Its cost
// is bounded by the number of intervals and count.
func (a Intervals) FirstMissing(count, limit int) []int {
	var missing []int
	next := 0
	for _, iv := range append(slices.Clip(a), Interval{limit, limit}) {
		for ; next < min(iv.First, limit) && len(missing) < count; next++ {
			missing = append(missing, next)
		}
		next = max(next, iv.Last+1)
	}
	return missing
}

// String is the text form.
func (a Intervals) String() string {
	var b strings.Builder
	for _, iv := range a {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(iv.First))
		switch iv.Last - iv.First {
		case 0:
			continue
		case 1:
			b.WriteByte(',')
		default:
			b.WriteByte('-')
		}
		b.WriteString(strconv.Itoa(iv.Last))
	}
	return b.String()
}
