package mirror

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseIntervals(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "",
		"0":                     "0",
		"0,1":                   "0,1",
		"0,1,2":                 "0-2",
		"0-2,3":                 "0-3",
		"1,3-5,7":               "1,3-5,7",
		"2147483646-2147483647": "2147483646,2147483647",
	} {
		if got, err := ParseIntervals(text, MaxIndexBytes); err != nil || got.String() != want {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
	for _, text := range []string{
		",", "1,", ",1", "1,,2", "-", "-1", "1-", "1-1", "2-1", "1,1", "2,1", "0-2,2", "+1", "01", "00", " 1", "1 ", "a",
		"0-1-2", "1.5", "2147483648", "99999999999", "1\x00", strings.Repeat("7", 1<<20),
	} {
		if got, err := ParseIntervals(text, MaxIndexBytes); err == nil {
			t.Errorf("%.20q is taken for %v", text, got)
		}
	}
	if _, err := ParseIntervals("0,1", 2); err == nil {
		t.Error("text beyond the limit is read")
	}
}

func TestLargestIndexTextIsAccepted(t *testing.T) {
	var set Intervals
	for i := int32(1); i < 100_000; i += 2 {
		set = append(set, interval{i, i})
	}
	if got, err := ParseIntervals(set.String(), MaxIndexBytes); err != nil || got.Count() != 50_000 {
		t.Errorf("got %d indexes, %v", got.Count(), err)
	}
}

const universe = 24

// anySet draws a set, and its members.
func anySet(t *rapid.T, label string) (Intervals, [universe]bool) {
	var members [universe]bool
	var set Intervals
	for i := range members {
		if members[i] = rapid.Bool().Draw(t, label); members[i] {
			set = set.push(interval{int32(i), int32(i)})
		}
	}
	return set, members
}

func (s Intervals) members() (out [universe]bool) {
	for _, iv := range s {
		for i := iv.first; i <= iv.last; i++ {
			out[i] = true
		}
	}
	return out
}

// canonical is the invariant of Intervals.
func (s Intervals) canonical() bool {
	for i, iv := range s {
		if iv.first > iv.last || (i > 0 && iv.first <= s[i-1].last+1) {
			return false
		}
	}
	return true
}

func TestIntervalsLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, inA := anySet(t, "a")
		b, inB := anySet(t, "b")
		n := int32(rapid.IntRange(0, universe).Draw(t, "n"))
		var union, minus, below [universe]bool
		subset, disjoint, within, count := true, true, true, int64(0)
		for i := range universe {
			union[i], minus[i], below[i] = inA[i] || inB[i], inA[i] && !inB[i], inA[i] && int32(i) < n
			subset = subset && (!inA[i] || inB[i])
			disjoint = disjoint && !(inA[i] && inB[i])
			within = within && (!inA[i] || int32(i) < n)
			if inA[i] {
				count++
			}
		}
		for name, pair := range map[string]struct {
			got  Intervals
			want [universe]bool
		}{"union": {a.Union(b), union}, "minus": {a.Minus(b), minus}, "below": {a.Below(n), below}} {
			if pair.got.members() != pair.want || !pair.got.canonical() {
				t.Errorf("%s of %q and %q (n=%d) is %q", name, a, b, n, pair.got)
			}
		}
		if a.SubsetOf(b) != subset || a.Disjoint(b) != disjoint || a.Within(n) != within || a.Count() != count {
			t.Errorf("subset %v, disjoint %v, within %v, count %d of %q and %q", a.SubsetOf(b), a.Disjoint(b), a.Within(n), a.Count(), a, b)
		}
		if a.members() != inA || b.members() != inB {
			t.Error("an operand was changed")
		}
		again, err := ParseIntervals(a.String(), MaxIndexBytes)
		if err != nil || again.String() != a.String() || again.members() != inA {
			t.Errorf("%q is read as %q, %v", a, again, err)
		}
	})
}

func TestIntervalsAtTheEdge(t *testing.T) {
	top := Intervals{{0, math.MaxInt32}}
	if top.Count() != 1<<31 || top.Union(top).Count() != 1<<31 || len(top.Minus(top)) != 0 {
		t.Errorf("%q: count %d", top, top.Count())
	}
	if got := top.Minus(Intervals{{math.MaxInt32, math.MaxInt32}}).String(); got != "0-2147483646" {
		t.Errorf("got %q", got)
	}
}

// Hostile text is refused, or read; it never panics, and never allocates beyond its own size.
func FuzzParseIntervals(f *testing.F) {
	f.Add("0-2,5")
	f.Add("2147483647-0")
	f.Fuzz(func(t *testing.T, text string) {
		set, err := ParseIntervals(text, MaxIndexBytes)
		if err == nil && !set.canonical() {
			t.Errorf("%q gives %v", text, set)
		}
	})
}
