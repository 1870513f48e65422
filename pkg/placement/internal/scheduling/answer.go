package scheduling

import (
	"cmp"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
)

// Verdict says when a worker can run a Job.
type Verdict int

const (
	// FitsNow: the scheduler will find nodes for all Pods that are needed at once.
	FitsNow Verdict = iota
	// FitsAfterScaleUp: it will, once the worker's autoscaler has added nodes.
	FitsAfterScaleUp
	// FitsLater: it will, when Pods have ended or nodes are back.
	FitsLater
	// Never: no Pod of the Job fits, whatever ends; or not all of a gang.
	Never
)

func (v Verdict) String() string {
	return [...]string{"FitsNow", "FitsAfterScaleUp", "FitsLater", "Never"}[v]
}

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
	// AfterScaleUp is how many fit once nodes were added; zero if that doesn't help.
	AfterScaleUp int64
	// Preempts: the verdict and the numbers are those after Pods of a lower priority were
	// preempted.
	Preempts bool
	// Reasons why nodes don't take one more Pod, the most frequent first: of the view ever for
	// Never, otherwise of the view now.
	Reasons []Count
	// Looked is the Snapshot that the Reasons are of: the worker's, perhaps with nodes that its
	// autoscaler could add.
	Looked *Snapshot
	// Panic is what judging ended in, with the stack, mostly because of objects that no API server
	// stores. The Job waits then, and nothing was counted. It's empty otherwise.
	Panic string
	// Unjudged are the fields of the Job that weren't compared with what the worker has: that would
	// have taken too much work. It's nearly always empty.
	Unjudged []string
	// Contended: other Pods of the Job's group could take all the room that even an idle worker has
	// for the Job. So the numbers are those of the Job alone.
	Contended bool
	// Mate is the other Job of the group for which the verdict isn't a better one; nil if it is for
	// the Job itself.
	Mate *MateAnswer
	// least is how many Pods must fit at once, however many the idle worker holds.
	least int64
}

// Needed is how many Pods must fit at once: all, but no more than fit once all Pods that end by
// themselves have ended. It's at least one, or a gang: otherwise the Job waits for nodes that are
// back.
func (a *Answer) Needed() int64 { return max(min(a.Wanted, a.Idle), a.least) }

// NeverFits reports whether no Pod of the Job fits, whatever ends; or not all of a gang.
func (a *Answer) NeverFits() bool { return a.Verdict == Never }

// Nearest are the reasons of the nodes that were nearest to taking a Pod, in the order of their
// messages. There is none if the worker has no nodes.
func (a *Answer) Nearest() []Reason {
	most := none
	for i := range a.Reasons {
		most = max(most, slices.Index(byNearness, a.Reasons[i].Plugin))
	}
	var nearest []Reason
	for i := range a.Reasons {
		if slices.Index(byNearness, a.Reasons[i].Plugin) == most {
			nearest = append(nearest, a.Reasons[i].Reason)
		}
	}
	slices.SortFunc(nearest, func(a, b Reason) int { return cmp.Compare(a.Message, b.Message) })
	return nearest
}

// MateAnswer is that for a mate, by the name of its Job.
type MateAnswer struct {
	Name string
	Answer
}

// Count of nodes with one reason. A reason that isn't a node's has none.
type Count struct {
	Reason
	Nodes int
}

// Judge says whether the Job, which wants a number of Pods at once, fits in a worker. What a worker
// has made up ends nothing but this one answer: locks on the way are released by defer, or guard
// nothing that can panic.
func (j *Job) Judge(s *Snapshot, wanted int64) (answer Answer) {
	defer contain(&answer, wanted)
	answer, judged := bounded(j, func(j *Job, b *budget) Answer { return judge(s, j, wanted, b) })
	answer.Unjudged = judged.unjudged
	return answer
}

// contain ends a panic in the answer that nothing can be said.
func contain(answer *Answer, wanted int64) {
	if cause := recover(); cause != nil {
		*answer = Answer{
			Looked: NewSnapshot(nil, nil, nil), Verdict: FitsLater, Wanted: wanted, least: 1, Reasons: []Count{{Reason: cantJudge}},
			Panic: fmt.Sprintf("%v\n%s", cause, debug.Stack()),
		}
	}
}

// judging stands for a plugin that refuses all workers that nobody can judge.
const judging = "Judging"

// cantJudge is why a Job doesn't go to such a worker.
var cantJudge = Reason{judging, "the worker's objects can't be judged", ""}

func judge(s *Snapshot, j *Job, wanted int64, b *budget) Answer {
	if answer := s.beforeNodes(j, wanted); answer != nil {
		return *answer
	}
	a := s.admit(j, b)
	if a.refused != nil {
		return Answer{Looked: s, Verdict: Never, Wanted: wanted, Reasons: []Count{{Reason: *a.refused}}}
	}
	answer := a.judge(s, wanted)
	if answer.Verdict != FitsNow && s.Preemption {
		answer = a.preempting(s, wanted, answer)
	}
	if s.Autoscaling == nil || answer.Verdict == FitsNow && (answer.Preempts || answer.Now >= wanted) {
		return answer
	}
	return a.scalingUp(s, wanted, answer)
}

// judge answers for a Job that the API server admits.
func (a *admitted) judge(s *Snapshot, wanted int64) Answer {
	current := a.fill(view{s, Now, a.work}, min(wanted, a.now))
	if current.pods == a.now && a.now < wanted {
		current.reasons = []*Reason{a.shares[a.limit].reason()}
	}
	answer := Answer{Looked: s, Wanted: wanted, Now: current.pods, Idle: wanted, least: max(min(a.gang, wanted), 1)}
	if current.pods >= wanted {
		return answer
	}
	admitted, refused := a.whenIdle(s)
	if admitted == 0 {
		return Answer{Verdict: Never, Wanted: wanted, Reasons: []Count{{Reason: *refused}}}
	}
	answer.Idle = a.fitIdle(s, min(wanted, admitted), a.work)
	answer.Reasons = current.counts()
	switch {
	case current.pods >= answer.Needed():
		return answer
	case answer.Idle >= answer.least:
		answer.Verdict = FitsLater
		return answer
	}
	answer.Verdict = FitsLater
	if refused := a.neverFits(view{s, Ever, a.work}, answer.least); refused != nil {
		answer.Verdict, answer.Reasons = Never, refused.counts()
	}
	return answer
}

// tooFew is the reason against a gang of which some Pods fit.
var tooFew = Reason{"GangScheduling", "too few nodes for all Pods of the gang", "spec.scheduling.schedulingPolicy.gang.minCount"}

// neverFits returns why; nil if the Job may fit. Whether all Pods of a gang fit is judged by what
// each node alone has: which other Pods will be there then isn't known.
func (a *admitted) neverFits(v view, gang int64) *filling {
	one := a.fill(v, 1)
	if one.pods == 0 {
		return &one
	}
	if gang > 1 {
		all := sum(v, a.allFilters(v), gang, false)
		if all.pods < gang {
			all.reasons = []*Reason{&tooFew}
			return &all
		}
	}
	return nil
}

func (f *filling) counts() []Count {
	byPointer := map[*Reason]int{}
	for _, r := range f.reasons {
		if r != nil { // nil: a node that took none, and would now
			byPointer[r]++
		}
	}
	byReason := map[Reason]int{}
	for r, nodes := range byPointer {
		if !r.ofNodes() {
			nodes = 0
		}
		byReason[*r] += nodes
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
