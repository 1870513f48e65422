package scheduling

import (
	"maps"
	"slices"
	"strings"
	"unique"

	"k8s.io/apimachinery/pkg/labels"
)

// kind is what selectors see of a Pod. Most Pods of a node, and of a worker, share theirs, so that
// it's kept, and looked at, once.
type kind struct{ unique.Handle[namespaced] }

// namespaced labels.
type namespaced struct {
	namespace string
	labels    labelSet
}

func kindOf(namespace string, labels map[string]string) kind {
	return kind{unique.Make(namespaced{namespace, labelSetOf(labels)})}
}

// countKey has all that Pods must share to be counted together: lasts and leaving are those of Pod.
type countKey struct {
	kind
	lasts, leaving bool
}

// kindCount counts Pods on a node that are alike.
type kindCount struct {
	countKey
	count int64
}

func countsOf(pods []*Pod) []kindCount {
	var counts []kindCount
	at := make(map[countKey]int, len(pods))
	for _, p := range pods {
		key := countKey{p.kind, p.Lasts, p.Leaving}
		i, known := at[key]
		if !known {
			i = len(counts)
			at[key] = i
			counts = append(counts, kindCount{countKey: key})
		}
		counts[i].count++
	}
	return counts
}

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

// Lookup finds a label. Keys and values have neither "=" nor ",".
func (s labelSet) Lookup(key string) (value string, exists bool) {
	for pair := range strings.SplitSeq(string(s), ",") {
		if k, v, is := strings.Cut(pair, "="); is && k == key {
			return v, true
		}
	}
	return "", false
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

// matcher asks once for each kind whether it is selected.
type matcher struct {
	matches func(namespaced) bool
	known   map[kind]bool
}

func newMatcher(matches func(namespaced) bool) matcher { return matcher{matches, map[kind]bool{}} }

func (m matcher) selects(k kind) bool {
	matches, is := m.known[k]
	if !is {
		matches = m.matches(k.Value())
		m.known[k] = matches
	}
	return matches
}
