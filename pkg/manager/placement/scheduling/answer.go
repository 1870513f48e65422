package scheduling

import (
	"cmp"
	"maps"
	"slices"
)

// Verdict says when a worker can run a Job.
type Verdict int

const (
	// FitsNow: the scheduler will find nodes for all Pods that are needed at once.
	FitsNow Verdict = iota
	// FitsLater: it will, when Pods have ended or nodes are back.
	FitsLater
	// Never: no Pod of the Job fits, whatever ends.
	Never
)

func (v Verdict) String() string { return [...]string{"FitsNow", "FitsLater", "Never"}[v] }

// Answer for one Job and one worker.
type Answer struct {
	Verdict Verdict
	// Wanted is how many Pods were asked for.
	Wanted int64
	// Now is how many of them fit now, whatever nodes the scheduler prefers.
	Now int64
	// Idle is how many fit once all Pods that end by themselves have ended. It is known unless all
	// fit now.
	Idle int64
	// Reasons why nodes don't take one more Pod, the most frequent first: of the view ever for
	// Never, otherwise of the view now.
	Reasons []Count
}

// Count of nodes with one reason. A reason of the API server's has none.
type Count struct {
	Reason
	Nodes int
}

// Judge answers for a Job that wants a number of Pods at once.
func Judge(s *Snapshot, j *Job, wanted int64) Answer {
	a := s.admit(j)
	if a.refused != nil {
		return Answer{Verdict: Never, Wanted: wanted, Reasons: []Count{{Reason: *a.refused}}}
	}
	current := a.fill(view{s, now}, min(wanted, a.now))
	if current.pods == a.now && a.now < wanted {
		current.reasons = []*Reason{a.limit}
	}
	answer := Answer{Wanted: wanted, Now: current.pods, Idle: wanted}
	if current.pods >= wanted {
		return answer
	}
	answer.Idle = a.fill(view{s, idle}, min(wanted, a.idle)).pods
	answer.Reasons = current.counts()
	switch {
	case current.pods >= max(answer.Idle, 1):
		return answer
	case answer.Idle > 0:
		answer.Verdict = FitsLater
		return answer
	}
	last := a.fill(view{s, ever}, 1)
	answer.Verdict = FitsLater
	if last.pods == 0 {
		answer.Verdict, answer.Reasons = Never, last.counts()
	}
	return answer
}

func (f *filling) counts() []Count {
	byReason := map[Reason]int{}
	for _, r := range f.reasons {
		byReason[*r]++
	}
	counts := make([]Count, 0, len(byReason))
	for _, r := range slices.Collect(maps.Keys(byReason)) {
		counts = append(counts, Count{r, byReason[r]})
	}
	slices.SortFunc(counts, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Message, b.Message))
	})
	return counts
}
