package intervals

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// maxBytes bounds the text that ParseStrict reads, whatever the limit. That of a Job with 100,000
// completions of which every second is in the set is 300 kB shorter.
const maxBytes = 768 << 10

// maxReserved is for how many intervals ParseStrict reserves memory before it has read them.
const maxReserved = 1 << 16

// NoLimit is above every index.
const NoLimit = math.MaxInt32

// ParseStrict reads the text form. Indexes must increase; intervals that touch are merged. Only
// plain decimal digits are accepted: no sign, no space, no leading zero. Text that is longer than
// that of any set of indexes below the limit is refused unread; an index beyond the limit isn't.
func ParseStrict(text string, limit int) (Set, error) {
	if text == "" {
		return nil, nil
	}
	// Every index takes at most the digits of the limit, and a comma.
	if int64(len(text)) > min(maxBytes, int64(limit)*int64(len(strconv.Itoa(limit))+1)) {
		return nil, errors.New("text is too long")
	}
	return kept.read(question{text: text}, parseStrict)
}

func parseStrict(text string) (Set, error) {
	set := make(Set, 0, min(strings.Count(text, ",")+1, maxReserved))
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

func parseIndex(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n > 0 && text[0] == '0' || n == 0 && text != "0" {
		return 0, fmt.Errorf("%.16q isn't an index", text)
	}
	return int(n), nil
}

// ParseLenient reads the text form and drops every index that is not below the limit. Parts that
// can't be read are left out, and the order doesn't matter.
func ParseLenient(text string, limit int) Set {
	set, err := kept.read(question{text: text}, parseStrict)
	if err != nil {
		set, _ = kept.read(question{text: text, lenient: true}, parseLenient)
	}
	return set.Below(limit)
}

func parseLenient(text string) (Set, error) {
	var all []interval
	for part := range strings.SplitSeq(text, ",") {
		low, high, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(low)
		last := first
		if isRange && err == nil {
			last, err = strconv.Atoi(high)
		}
		last = min(last, NoLimit-1)
		if err == nil && first >= 0 && first <= last {
			all = append(all, interval{first, last})
		}
	}
	return normalize(all), nil
}
