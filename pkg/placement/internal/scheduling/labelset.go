package scheduling

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// labelSet is labels as one text, such as "app=a,tier=1,".
type labelSet string

var _ labels.Labels = labelSet("")

func labelSetOf(set map[string]string) labelSet {
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(set)) {
		text.WriteString(key + "=" + set[key] + ",")
	}
	return labelSet(text.String())
}

// Lookup finds a label. Keys and values have neither "=" nor ",", and the labels are in order of
// their keys: few of them are read.
func (s labelSet) Lookup(key string) (value string, exists bool) {
	for len(s) > 0 {
		begin := 1 + strings.LastIndexByte(string(s[:len(s)/2]), ',')
		length := strings.IndexByte(string(s[begin:]), ',')
		k, v, _ := strings.Cut(string(s[begin:begin+length]), "=")
		switch {
		case k == key:
			return v, true
		case k < key:
			s = s[begin+length+1:]
		default:
			s = s[:begin]
		}
	}
	return "", false
}

func (s labelSet) values() []string {
	var values []string
	for pair := range strings.SplitSeq(string(s), ",") {
		if _, value, is := strings.Cut(pair, "="); is {
			values = append(values, value)
		}
	}
	return values
}

// Has reports whether there is the label.
func (s labelSet) Has(key string) bool {
	_, has := s.Lookup(key)
	return has
}

// Get is the label's value, or empty.
func (s labelSet) Get(key string) string {
	value, _ := s.Lookup(key)
	return value
}
