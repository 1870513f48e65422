package placement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxExplanation bounds Explain's answer, in bytes: the API server cuts an event's message at
// 1,024.
const maxExplanation = 900

// Explain is one line in the manner of the scheduler's, which accounts for every cluster once:
//
//	0/3 clusters available: 2 Insufficient nvidia.com/gpu, 1 cordoned.
//
// The most frequent reason goes first; the rarest are summed up when the line would be too long.
func (d Decision) Explain() string {
	if d.Cluster == "" {
		return d.Available()
	}
	return d.Cluster + " chosen" + d.Proviso() + ", " + d.Available()
}

// Proviso is what has to happen in the chosen cluster before all Pods that are needed find room;
// empty: nothing.
func (d Decision) Proviso() string {
	for _, c := range d.Candidates {
		if c.Cluster == d.Cluster && c.ScaleUp {
			return scalingUp
		}
	}
	return ""
}

// Available is Explain without the choice.
func (d Decision) Available() string {
	total := len(d.Candidates) + len(d.Rejections)
	if total == 0 {
		return "0/0 clusters available: no cluster is registered."
	}
	head := fmt.Sprintf("%d/%d clusters available", len(d.Candidates), total)
	tail := "."
	if len(d.Unjudged) > 0 {
		tail = ". Judged without what would take too much work: " + strings.Join(d.Unjudged, ", ") + "."
	}
	if len(d.Rejections) == 0 {
		return head + tail
	}
	return head + ": " + strings.Join(abridge(d.groups(), maxExplanation-len(head)-len(tail)), ", ") + tail
}

// maxNamed is how many clusters Named names.
const maxNamed = 8

// Named is Explain with the clusters by name, where they're few. It has no numbers that change by
// the minute, so that two answers can be compared.
func (d Decision) Named() string {
	if len(d.Rejections) == 0 || len(d.Rejections) > maxNamed {
		return d.Explain()
	}
	named := make([]string, 0, len(d.Rejections))
	for _, r := range d.Rejections {
		named = append(named, r.Cluster+": "+r.Message)
	}
	return d.Explain() + " (" + strings.Join(named, "; ") + ")"
}

// Details is one line per cluster, best candidate first, then the rejected by name.
func (d Decision) Details() []string {
	lines := make([]string, 0, len(d.Candidates)+len(d.Rejections))
	for i, c := range d.Candidates {
		state := "fits"
		if i == 0 {
			state = "chosen"
		}
		if c.ScaleUp {
			state += scalingUp
		}
		if c.Preempts {
			state += preempting
		}
		lines = append(lines, fmt.Sprintf("%s: %s, score %.3f", c.Cluster, state, float64(c.Score)/all))
	}
	for _, r := range d.Rejections {
		line := r.Cluster + ": " + r.Message
		if r.Detail != "" {
			line += ": " + r.Detail
		}
		lines = append(lines, line)
	}
	return lines
}

// group counts the clusters with one message.
type group struct {
	count   int
	message string
}

func (g group) String() string { return fmt.Sprintf("%d %s", g.count, g.message) }

func (d Decision) groups() []group {
	counts := map[string]int{}
	for _, r := range d.Rejections {
		counts[r.Message]++
	}
	groups := make([]group, 0, len(counts))
	for _, message := range slices.Collect(maps.Keys(counts)) {
		groups = append(groups, group{count: counts[message], message: message})
	}
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.message, b.message))
	})
	return groups
}

// abridge renders groups within a number of bytes.
func abridge(groups []group, limit int) []string {
	var parts []string
	rest := 0
	for _, g := range groups {
		limit -= len(g.String()) + len(", ")
		if limit < 0 {
			rest += g.count
			continue
		}
		parts = append(parts, g.String())
	}
	if rest > 0 {
		parts = append(parts, fmt.Sprintf("%d for other reasons", rest))
	}
	return parts
}
