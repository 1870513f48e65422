package intervals

import (
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/jobferry/jobferry/pkg/util/costtest"
)

func TestParseStrict(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "",
		"0":                     "0",
		"0,1":                   "0,1",
		"0,1,2":                 "0-2",
		"0-2,3":                 "0-3",
		"1,3-5,7":               "1,3-5,7",
		"2147483646-2147483647": "2147483646,2147483647",
	} {
		if got, err := ParseStrict(text, NoLimit); err != nil || got.String() != want {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
	for _, text := range []string{
		",", "1,", ",1", "1,,2", "-", "-1", "1-", "1-1", "2-1", "1,1", "2,1", "0-2,2", "+1", "01", "00", " 1", "1 ", "a",
		"0-1-2", "1.5", "1_0", "2147483648", "99999999999", "1\x00", strings.Repeat("7", 1<<20), strings.Repeat("1,", 1<<20),
	} {
		if got, err := ParseStrict(text, NoLimit); err == nil {
			t.Errorf("%.20q is read as %v", text, got)
		}
	}
}

func TestParseStrictBoundsTheText(t *testing.T) {
	if _, err := ParseStrict("0,1", 1); err == nil {
		t.Error("text beyond the limit is read")
	}
	if _, err := ParseStrict("7", 1); err != nil {
		t.Errorf("an index beyond the limit: %v", err)
	}
	var odd []int
	for i := 1; i < 100_000; i += 2 {
		odd = append(odd, i)
	}
	for _, limit := range []int{100_000, NoLimit} {
		if got, err := ParseStrict(Of(odd...).String(), limit); err != nil || got.Len() != 50_000 {
			t.Errorf("limit %d: got %d indexes, %v", limit, got.Len(), err)
		}
	}
}

func TestParseLenient(t *testing.T) {
	for _, row := range []struct {
		name, text string
		limit      int
		want       string
	}{
		{"nothing", "", 10, ""},
		{"one index", "3", 10, "3"},
		{"two neighbours have no dash", "3-4", 10, "3,4"},
		{"a run has one", "3,4,5", 10, "3-5"},
		{"touching parts are joined", "0-2,3-5", 10, "0-5"},
		{"indexes from the limit on are dropped", "1-8", 5, "1-4"},
		{"whole parts from the limit on are dropped", "1,6-8", 5, "1"},
		{"damaged parts are left out", "1,x,3-y,5,7-6", 10, "1,5"},
		{"negative indexes are left out", "-1,2", 10, "2"},
		{"the order doesn't matter", "7,1-3,2-5", 10, "1-5,7"},
		{"no index below an empty limit", "0-3", 0, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := ParseLenient(row.text, row.limit).String(); got != row.want {
				t.Errorf("ParseLenient(%q, %d) = %q, want %q", row.text, row.limit, got, row.want)
			}
		})
	}
}

const universe = 40

// members draws a set as a plain list.
func members(t *rapid.T, label string) []int {
	return rapid.SliceOfDistinct(rapid.IntRange(0, universe-1), rapid.ID[int]).Draw(t, label)
}

// canonical reports whether the invariant of Set holds.
func (s Set) canonical() bool {
	for i, iv := range s {
		if iv.first > iv.last || (i > 0 && iv.first <= s[i-1].last+1) {
			return false
		}
	}
	return true
}

// sharedOf has the lowest index that both sets have.
func sharedOf(a, b Set) Set {
	if index, is := Shared(a, b, nil); is {
		return Of(index)
	}
	return nil
}

// The laws: a set behaves as a plain list of its members does.
func TestSetLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := members(t, "x"), members(t, "y")
		n := rapid.IntRange(0, universe).Draw(t, "n")
		a, b := Of(x...), Of(y...)
		where := func(keep func(i int) bool) (list []int) {
			for i := range universe {
				if keep(i) {
					list = append(list, i)
				}
			}
			return list
		}
		inA := func(i int) bool { return slices.Contains(x, i) }
		inB := func(i int) bool { return slices.Contains(y, i) }
		low, high := a.Split(n)
		var parts Parts
		for _, i := range x {
			parts.Add(Of(i))
		}
		isLow := func(i int) bool { return slices.Contains(a.First(n), i) }
		for name, c := range map[string]struct {
			got  Set
			want func(i int) bool
		}{
			"of":        {a, inA},
			"union":     {a.Union(b), func(i int) bool { return inA(i) || inB(i) }},
			"intersect": {a.Intersect(b), func(i int) bool { return inA(i) && inB(i) }},
			"minus":     {a.Minus(b), func(i int) bool { return inA(i) && !inB(i) }},
			"parts":     {parts.LeftOf(b), func(i int) bool { return inB(i) && !inA(i) }},
			"below":     {a.Below(n), func(i int) bool { return inA(i) && i < n }},
			"shared":    {sharedOf(a, b), func(i int) bool { return inA(i) && inB(i) && i == a.Intersect(b).First(1)[0] }},
			"meeting": {a.Meeting(b), func(i int) bool {
				return slices.ContainsFunc(a, func(iv interval) bool {
					return iv.first <= i && i <= iv.last && len(Set{iv}.Intersect(b)) > 0
				})
			}},
			"low":        {low, isLow},
			"high":       {high, func(i int) bool { return inA(i) && !isLow(i) }},
			"complement": {Range(0, n).Minus(a), func(i int) bool { return i < n && !inA(i) }},
		} {
			want := where(c.want)
			if !slices.Equal(c.got.First(universe), want) || c.got.Len() != len(want) || !c.got.canonical() {
				t.Errorf("%s of %q and %q (n=%d) is %q, want %v", name, a, b, n, c.got, want)
			}
			if some := c.got.First(3); !slices.Equal(some, want[:min(3, len(want))]) {
				t.Errorf("the first of %q are %v", c.got, some)
			}
			for i := -1; i <= universe; i++ {
				if c.got.Has(i) != slices.Contains(want, i) {
					t.Errorf("membership of %d in %q is wrong", i, c.got)
				}
			}
			roundTrip(t, c.got)
		}
		if parts.Meet(b) != (len(a.Intersect(b)) > 0) {
			t.Errorf("parts %q meet %q: %v", parts, b, parts.Meet(b))
		}
		if want := where(inA); !slices.Equal(a.First(universe), want) {
			t.Error("an operand was changed")
		}
		if a.SubsetOf(b) != (len(where(func(i int) bool { return inA(i) && !inB(i) })) == 0) {
			t.Errorf("subset %v of %q and %q", a.SubsetOf(b), a, b)
		}
		if !slices.Equal(a.Union(b), b.Union(a)) || !slices.Equal(a.Intersect(b), b.Intersect(a)) {
			t.Errorf("the order of %q and %q matters", a, b)
		}
	})
}

// roundTrip shows that both functions read what String writes.
func roundTrip(t *rapid.T, set Set) {
	if strict, err := ParseStrict(set.String(), universe); err != nil || !slices.Equal(strict, set) {
		t.Errorf("%q is read strictly as %q, %v", set, strict, err)
	}
	if lenient := ParseLenient(set.String(), universe); !slices.Equal(lenient, set) {
		t.Errorf("%q is read leniently as %q", set, lenient)
	}
}

func TestSetAtTheEdge(t *testing.T) {
	top := Set{{0, math.MaxInt32}}
	if top.Len() != 1<<31 || top.Union(top).Len() != 1<<31 || len(top.Minus(top)) != 0 {
		t.Errorf("%q: length %d", top, top.Len())
	}
	if got := top.Minus(Of(math.MaxInt32)).String(); got != "0-2147483646" {
		t.Errorf("got %q", got)
	}
	if got := Range(3, 3).String() + Range(3, 0).String(); got != "" {
		t.Errorf("an empty range is %q", got)
	}
}

// Hostile text is refused, or read; it never panics. What is read strictly is read leniently, too,
// as the same set.
func FuzzParse(f *testing.F) {
	f.Add("0-2,5")
	f.Add("2147483647-0")
	f.Fuzz(func(t *testing.T, text string) {
		lenient := ParseLenient(text, NoLimit)
		strict, err := ParseStrict(text, NoLimit)
		if !lenient.canonical() || !strict.canonical() {
			t.Errorf("%q gives %v and %v", text, strict, lenient)
		}
		if err == nil && !slices.Equal(strict.Below(NoLimit), lenient) {
			t.Errorf("%q is read strictly as %q, leniently as %q", text, strict, lenient)
		}
	})
}

func FuzzCost(f *testing.F) {
	f.Add("0", ",1", "")
	f.Add("0", ",", "")
	f.Add("0-1", ",3-5", "")
	f.Add("0", "7", "")
	costtest.Check(f, 64<<10, 100, func(text string) {
		if set, err := parseStrict(text); err == nil { // what is kept costs nothing
			_ = set.String()
		}
		set, _ := parseLenient(text)
		Shared(set, set)
	})
}

// TestCommasTakeLittleMemory: a worker's text has room for many intervals, and has none.
func TestCommasTakeLittleMemory(t *testing.T) {
	text := strings.Repeat(",", 700<<10)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := ParseStrict(text, NoLimit)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 2<<20 || err == nil {
		t.Errorf("%d KiB were allocated, %v", took>>10, err)
	}
}

// A long text is read once, however it's asked for, and also if it's damaged; but no more of them
// are kept than take some memory.
func TestLongTextsAreReadOnce(t *testing.T) {
	long := func(from int, end string) string {
		var odd []int
		for i := 1; i < 100_000; i += 2 {
			odd = append(odd, from+i)
		}
		return Of(odd...).String() + end
	}
	for name, text := range map[string]string{"well-formed": long(0, ""), "damaged": long(0, ",x")} {
		read := func() {
			strict, err := ParseStrict(text, NoLimit)
			if lenient := ParseLenient(text, 100_000); lenient.Len() != 50_000 || err == nil && strict.Len() != 50_000 {
				t.Errorf("%s: %d and %d indexes are read, %v", name, strict.Len(), lenient.Len(), err)
			}
		}
		read()
		if cost := costtest.Of(read); cost > 128<<10 { // stacks of the runtime count, too
			t.Errorf("%s: to read it again allocates %d bytes", name, cost)
		}
	}
	for i := range 100 {
		ParseLenient(long(i, ""), NoLimit)
	}
	bytes := 0
	for _, half := range []map[question]reading{kept.recent, kept.older} {
		for q, r := range half {
			bytes += len(q.text) + 16*cap(r.set)
		}
	}
	if bytes > maxKept || bytes < maxKept/4 {
		t.Errorf("%d bytes are kept", bytes)
	}
}

// However many sets are added, there are few parts.
func TestPartsAreFew(t *testing.T) {
	var parts Parts
	for i := range 1000 {
		if parts.Add(Of(2 * i)); len(parts) > 10 {
			t.Fatalf("%d parts of %d sets", len(parts), i+1)
		}
	}
}

// What few indexes have to do with a long set is found without a look at all of it.
func TestFewOfMany(t *testing.T) {
	var even []int
	for i := range 50_000 {
		even = append(even, 2*i)
	}
	many, few := Of(even...), Of(0, 1, 2, 40_001, 99_998)
	if near := many.near(few); len(near) != 3 || many.Minus(few).Len() != 49_997 || few.Minus(many).String() != "1,40001" || few.Intersect(many).String() != "0,2,99998" {
		t.Errorf("%d are looked at; %q, %q", len(near), few.Minus(many), few.Intersect(many))
	}
}
