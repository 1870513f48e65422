package measure

import (
	"slices"
	"time"
)

// Places are by how many places Jobs fell back.
type Places struct{ P50, P99, Most int }

// Overtaken is by how many places each Job fell back between two clusters: how much later it is in
// the order in which Jobs were created in the followers, all together, than in the source's. Jobs
// that are missing in one of them aren't counted.
func Overtaken(source *Timeline, followers ...*Timeline) Places {
	before, after := source.created(), map[string]time.Time{}
	for _, f := range followers {
		for job, at := range f.created() {
			if _, is := before[job]; is {
				after[job] = at
			}
		}
	}
	for job := range before {
		if _, is := after[job]; !is {
			delete(before, job)
		}
	}
	ranks, fell := ranked(before), make([]int, 0, len(before))
	for job, rank := range ranked(after) {
		fell = append(fell, max(rank-ranks[job], 0))
	}
	if len(fell) == 0 {
		return Places{}
	}
	slices.Sort(fell)
	return Places{P50: rank(fell, 50), P99: rank(fell, 99), Most: rank(fell, 100)}
}

// created is when each Job was seen first.
func (t *Timeline) created() map[string]time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := map[string]time.Time{}
	for job, c := range t.jobs {
		all[job] = c.first[Created]
	}
	return all
}

// ranked is the place of each Job in the order of times.
func ranked(times map[string]time.Time) map[string]int {
	names := make([]string, 0, len(times))
	for name := range times {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return times[a].Compare(times[b]) })
	ranks := make(map[string]int, len(names))
	for i, name := range names {
		ranks[name] = i
	}
	return ranks
}
