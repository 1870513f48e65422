package job

import (
	"math/rand/v2"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/mirror/intervals"
)

// The exit codes of attempts. A podFailurePolicy gives the last three their meaning.
const (
	exitFails int32 = 1 + iota
	exitIgnored
	exitFailsIndex
	exitFailsJob
)

// exitKilled is how a Pod ends that is deleted.
const exitKilled int32 = 143

// fate is what becomes of one completion, wherever its Pods run: how its attempts exit, one after
// the other, until one succeeds; and how long each takes. An attempt that is killed is made again.
type fate struct {
	exits []int32
	takes []time.Duration // one more than exits
}

func anyFate(random *rand.Rand, codes []int32) fate {
	f := fate{}
	if random.IntN(3) == 0 {
		for range 1 + random.IntN(3) {
			f.exits = append(f.exits, codes[random.IntN(len(codes))])
		}
	}
	for range len(f.exits) + 1 {
		f.takes = append(f.takes, time.Duration(1+random.IntN(40))*time.Second)
	}
	return f
}

// oneRun is what really happens in one run of a story: it has no part in any status.
type oneRun struct {
	story *jobStory
	// attempts are those of each completion that have ended by themselves; failures those of them that
	// count and that the Pods which carry their number know of.
	attempts, failures []int
	held               []bool // by a Pod that runs
	succeeded          intervals.Set
	failed             intervals.Set // indexes that have used up their own limit
	// Pods that count as failed: those that exited, and those that were killed
	exits, kills int
	failsJob     bool
	live, widest int    // Pods that run, and that may
	problem      string // what must never be
}

func newRun(s *jobStory) *oneRun {
	n := len(s.fates)
	return &oneRun{story: s, attempts: make([]int, n), failures: make([]int, n), held: make([]bool, n)}
}

// take gives a Pod its completion: the one of its index, or without indexes the next one.
func (r *oneRun) take(index int) int {
	for i := range r.held {
		if index >= 0 && i != index || index < 0 && (r.held[i] || r.succeeded.Has(i)) {
			continue
		}
		if r.held[i] || r.succeeded.Has(i) || r.failed.Has(i) {
			r.problem = "a completion runs twice, or again"
		}
		r.held[i] = true
		if r.live++; r.live > r.widest {
			r.problem = "more Pods run than may"
		}
		return i
	}
	r.problem = "more Pods run than there are completions"
	return 0
}

// next is how the attempt of a completion ends, and how long it takes.
func (r *oneRun) next(i int) (exit int32, takes time.Duration) {
	f := r.story.fates[i]
	if n := r.attempts[i]; n < len(f.exits) {
		return f.exits[n], f.takes[n]
	}
	return 0, f.takes[len(f.takes)-1]
}

// kill has the Pod of a completion be deleted while it runs. Nobody carries the number of its
// failures on then.
func (r *oneRun) kill(i int, counts bool) {
	r.held[i], r.failures[i] = false, 0
	r.live--
	if counts {
		r.kills++
	}
}

// forget has the last failed Pod of an index be deleted with its Job.
func (r *oneRun) forget(i int) {
	if !r.held[i] {
		r.failures[i] = 0
	}
}

// end has an attempt end by itself.
func (r *oneRun) end(i int, exit int32) {
	r.held[i] = false
	r.live--
	r.attempts[i]++
	limit := r.story.job.Spec.BackoffLimitPerIndex
	switch {
	case exit == 0:
		r.succeeded = r.succeeded.Union(intervals.Of(i))
	case r.story.does(exit) == batchv1.PodFailurePolicyActionIgnore:
	default:
		r.exits++
		r.failures[i]++
		r.failsJob = r.failsJob || r.story.does(exit) == batchv1.PodFailurePolicyActionFailJob
		if limit != nil && (r.failures[i] > int(*limit) || r.story.does(exit) == batchv1.PodFailurePolicyActionFailIndex) {
			r.failed = r.failed.Union(intervals.Of(i))
		}
	}
}

// does is what the story's podFailurePolicy does about an exit code.
func (s *jobStory) does(exit int32) batchv1.PodFailurePolicyAction {
	if policy := s.job.Spec.PodFailurePolicy; policy != nil {
		for _, rule := range policy.Rules {
			if slices.Contains(rule.OnExitCodes.Values, exit) {
				return rule.Action
			}
		}
	}
	return batchv1.PodFailurePolicyActionCount
}
