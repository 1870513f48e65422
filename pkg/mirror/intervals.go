package mirror

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Intervals is a set of completion indexes, in the form that the Job API uses for completedIndexes
// and failedIndexes: "0-2,5". The zero value is the empty set.
//
// Invariant: the intervals are in increasing order, and between two of them at least one index is
// missing. So equal sets have equal representations.
type Intervals []interval

type interval struct{ first, last int32 }

// MaxIndexBytes is the longest text that ParseIntervals accepts. The text of a Job with 100,000
// completions of which every second is in the set is 300 kB shorter.
const MaxIndexBytes = 768 << 10

var errIndexTooLong = errors.New("text is too long")

// ParseIntervals reads the text form. Indexes must increase; intervals that touch are merged. Only
// plain decimal digits are accepted: no sign, no space, no leading zero. Text longer than maxBytes
// or MaxIndexBytes is refused unread.
func ParseIntervals(text string, maxBytes int) (Intervals, error) {
	if text == "" {
		return nil, nil
	}
	if len(text) > min(maxBytes, MaxIndexBytes) {
		return nil, errIndexTooLong
	}
	var set Intervals
	for part := range strings.SplitSeq(text, ",") {
		iv, err := parseInterval(part)
		if err != nil {
			return nil, err
		}
		if n := len(set); n > 0 && iv.first <= set[n-1].last {
			return nil, fmt.Errorf("index %d is out of order", iv.first)
		}
		set = set.push(iv)
	}
	return set, nil
}

func parseInterval(text string) (interval, error) {
	low, high, isRange := strings.Cut(text, "-")
	first, err := parseIndex(low)
	if err != nil || !isRange {
		return interval{first, first}, err
	}
	last, err := parseIndex(high)
	if err == nil && last <= first {
		err = fmt.Errorf("interval %d-%d is out of order", first, last)
	}
	return interval{first, last}, err
}

func parseIndex(text string) (int32, error) {
	const maxDigits = 10 // of an int32
	if text == "" || len(text) > maxDigits || (text[0] == '0' && len(text) > 1) {
		return 0, fmt.Errorf("%.16q isn't an index", text)
	}
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("%.16q isn't an index", text)
		}
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("index %s is too large", text)
	}
	return int32(n), nil
}

// push appends an interval that begins at or after the last one's end, or overlaps only the last
// one.
func (s Intervals) push(iv interval) Intervals {
	if n := len(s); n > 0 && int64(iv.first) <= int64(s[n-1].last)+1 {
		s[n-1].last = max(s[n-1].last, iv.last)
		return s
	}
	return append(s, iv)
}

// String writes the set as the Job controller does: three or more consecutive indexes are joined by
// a hyphen.
func (s Intervals) String() string {
	var b []byte
	for i, iv := range s {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(iv.first), 10)
		switch {
		case iv.last == iv.first:
			continue
		case iv.last == iv.first+1:
			b = append(b, ',')
		default:
			b = append(b, '-')
		}
		b = strconv.AppendInt(b, int64(iv.last), 10)
	}
	return string(b)
}

// Count returns the number of indexes in the set.
func (s Intervals) Count() int64 {
	var n int64
	for _, iv := range s {
		n += int64(iv.last) - int64(iv.first) + 1
	}
	return n
}

// Union returns the indexes that are in either set.
func (s Intervals) Union(t Intervals) Intervals {
	var out Intervals
	for len(s) > 0 || len(t) > 0 {
		if len(t) == 0 || (len(s) > 0 && s[0].first <= t[0].first) {
			out, s = out.push(s[0]), s[1:]
		} else {
			out, t = out.push(t[0]), t[1:]
		}
	}
	return out
}

// Minus returns the indexes of s that aren't in t.
func (s Intervals) Minus(t Intervals) Intervals {
	var out Intervals
	for _, iv := range s {
		for len(t) > 0 && t[0].last < iv.first {
			t = t[1:]
		}
		rest, whole := iv, true
		for _, cut := range t {
			if cut.first > rest.last {
				break
			}
			if cut.first > rest.first {
				out = out.push(interval{rest.first, cut.first - 1})
			}
			if cut.last >= rest.last {
				whole = false
				break
			}
			rest.first = cut.last + 1
		}
		if whole {
			out = out.push(rest)
		}
	}
	return out
}

// Below returns the indexes of s that are less than n.
func (s Intervals) Below(n int32) Intervals {
	var out Intervals
	for _, iv := range s {
		if iv.first >= n {
			break
		}
		out = append(out, interval{iv.first, min(iv.last, n-1)})
	}
	return out
}

// Within says whether every index of s is less than n.
func (s Intervals) Within(n int32) bool {
	return len(s) == 0 || s[len(s)-1].last < n
}

// SubsetOf says whether every index of s is in t.
func (s Intervals) SubsetOf(t Intervals) bool {
	for _, iv := range s {
		for len(t) > 0 && t[0].last < iv.first {
			t = t[1:]
		}
		if len(t) == 0 || t[0].first > iv.first || t[0].last < iv.last {
			return false
		}
	}
	return true
}

// Disjoint says whether no index is in both sets.
func (s Intervals) Disjoint(t Intervals) bool {
	for len(s) > 0 && len(t) > 0 {
		switch {
		case s[0].last < t[0].first:
			s = s[1:]
		case t[0].last < s[0].first:
			t = t[1:]
		default:
			return false
		}
	}
	return true
}
