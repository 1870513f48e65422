package intervals

import (
	"math"
	"slices"
	"sort"
	"strconv"
)

// Set is a set of completion indexes. The zero value is the empty set.
//
// Invariant: the intervals are in increasing order, and between two of them at least one index is
// missing. So equal sets have equal representations.
type Set []interval

// interval is a range of indexes, both ends included.
type interval struct{ first, last int }

// Of returns the set of the given indexes, in any order.
func Of(indexes ...int) Set {
	all := make([]interval, len(indexes))
	for i, index := range indexes {
		all[i] = interval{index, index}
	}
	return normalize(all)
}

// Range returns the indexes from first on that are less than end.
func Range(first, end int) Set {
	if first >= end {
		return nil
	}
	return Set{{first, end - 1}}
}

func normalize(all []interval) Set {
	slices.SortFunc(all, func(x, y interval) int { return x.first - y.first })
	var set Set
	for _, iv := range all {
		set = set.push(iv)
	}
	return set
}

// push appends an interval that doesn't begin before the last one.
func (s Set) push(iv interval) Set {
	if n := len(s); n > 0 && iv.first-1 <= s[n-1].last {
		s[n-1].last = max(s[n-1].last, iv.last)
		return s
	}
	return append(s, iv)
}

// Has reports whether the index is in the set.
func (s Set) Has(index int) bool {
	at, found := slices.BinarySearchFunc(s, index, func(iv interval, index int) int { return iv.first - index })
	return found || at > 0 && index <= s[at-1].last
}

// Len returns the number of indexes in the set.
func (s Set) Len() int {
	n := 0
	for _, iv := range s {
		n += iv.last - iv.first + 1
	}
	return n
}

// First returns up to n indexes of the set, the lowest first.
func (s Set) First(n int) []int {
	list := slices.Grow([]int(nil), max(min(n, s.Len()), 0))
	for _, iv := range s {
		for i := iv.first; i <= iv.last; i++ {
			if len(list) >= n {
				return list
			}
			list = append(list, i)
		}
	}
	return list
}

// Split returns the n lowest indexes of the set, and the others.
func (s Set) Split(n int) (low, high Set) {
	for i, iv := range s {
		if size := iv.last - iv.first + 1; n >= size {
			n -= size
			continue
		}
		if n <= 0 {
			return s[:i:i], s[i:]
		}
		return append(s[:i:i], interval{iv.first, iv.first + n - 1}), append(Set{{iv.first + n, iv.last}}, s[i+1:]...)
	}
	return s, nil
}

// Meeting returns the intervals of s that have an index in t, whole.
func (s Set) Meeting(t Set) Set {
	var out Set
	for _, iv := range s {
		if len(t.near(Set{iv})) > 0 {
			out = append(out, iv)
		}
	}
	return out
}

// Union returns the indexes that are in either set.
func (s Set) Union(t Set) Set {
	switch {
	case len(t) == 0:
		return s
	case len(s) == 0:
		return t
	}
	return combine(s, t, func(inS, inT bool) bool { return inS || inT })
}

// UnionOf returns the indexes that are in any of some sets, which may be very many.
func UnionOf(sets ...Set) Set { return normalize(slices.Concat(sets...)) }

// Intersect returns the indexes that are in both sets.
func (s Set) Intersect(t Set) Set {
	return combine(s.near(t), t.near(s), func(inS, inT bool) bool { return inS && inT })
}

// Shared returns an index that several of some sets have; false: there is none.
func Shared(sets ...Set) (index int, is bool) {
	all := slices.Concat(sets...)
	slices.SortFunc(all, func(x, y interval) int { return x.first - y.first })
	for i := 1; i < len(all); i++ {
		if all[i].first <= all[i-1].last {
			return all[i].first, true
		}
	}
	return 0, false
}

// Minus returns the indexes of s that aren't in t.
func (s Set) Minus(t Set) Set {
	if t = t.near(s); len(t) == 0 {
		return s
	}
	return combine(s, t, func(inS, inT bool) bool { return inS && !inT })
}

// fewOf is how many times as many intervals a set must have for few to be looked for in it.
const fewOf = 8

// near returns the intervals of s between the ends of t, or of many only those that meet t: no
// other can. So what is done with a short range, or a few indexes, and a long set is cheap.
func (s Set) near(t Set) Set {
	if len(t) == 0 {
		return nil
	}
	from := sort.Search(len(s), func(i int) bool { return s[i].last >= t[0].first })
	to := sort.Search(len(s), func(i int) bool { return s[i].first > t[len(t)-1].last })
	s = s[from:to]
	if len(t) == 1 || len(s)/fewOf < len(t) {
		return s
	}
	var met Set
	for _, iv := range t {
		s = s[sort.Search(len(s), func(i int) bool { return s[i].last >= iv.first }):]
		n := sort.Search(len(s), func(i int) bool { return s[i].first > iv.last })
		met, s = append(met, s[:n]...), s[n:]
	}
	return met
}

// Below returns the indexes of s that are less than n.
func (s Set) Below(n int) Set {
	if len(s) == 0 || s[len(s)-1].last < n {
		return s
	}
	return s.Intersect(Range(0, n))
}

// SubsetOf reports whether every index of s is in t.
func (s Set) SubsetOf(t Set) bool { return len(s.Minus(t)) == 0 }

// combine returns the indexes that keep selects by their membership of either set. It steps from
// one edge, where a membership changes, to the next.
func combine(s, t Set, keep func(inS, inT bool) bool) Set {
	var out Set
	kept := false
	for i, j := 0, 0; i < 2*len(s) || j < 2*len(t); {
		edgeS, edgeT := s.edge(i), t.edge(j)
		at := min(edgeS, edgeT)
		if edgeS == at {
			i++
		}
		if edgeT == at {
			j++
		}
		switch keeps := keep(i%2 == 1, j%2 == 1); {
		case keeps && !kept:
			out, kept = append(out, interval{first: int(at)}), true
		case kept && !keeps:
			out[len(out)-1].last, kept = int(at-1), false
		}
	}
	return out
}

// edge returns the index at which the membership changes for the i-th time: into an interval for an
// even i, out of it for an odd one.
func (s Set) edge(i int) int64 {
	switch {
	case i >= 2*len(s):
		return math.MaxInt64
	case i%2 == 0:
		return int64(s[i/2].first)
	default:
		return int64(s[i/2].last) + 1
	}
}

// String writes the set as the Job controller does: three or more consecutive indexes are joined by
// a hyphen.
func (s Set) String() string {
	var b []byte
	for i, iv := range s {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(iv.first), 10)
		switch iv.last - iv.first {
		case 0:
			continue
		case 1:
			b = append(b, ',')
		default:
			b = append(b, '-')
		}
		b = strconv.AppendInt(b, int64(iv.last), 10)
	}
	return string(b)
}
