package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/worker/workertest"
)

// event is something that happens to a Job or to some of its Pods, on both sides alike.
type event struct {
	what string
	job  string
	// pod, if set, is done to a Pod of each class.
	classes []string
	pod     podEvent
	// edit, if set, is done to the Job.
	edit func(context.Context, *side, string) error
}

type podEvent func(context.Context, *side, corev1.Pod) error

func (e event) String() string {
	switch len(e.classes) {
	case 0:
		return e.what
	case 1:
		return e.what + " one of" + e.classes[0]
	}
	return fmt.Sprintf("%s %d Pods, from%s to%s", e.what, len(e.classes), e.classes[0], e.classes[len(e.classes)-1])
}

// apply has it happen on one side.
func (e event) apply(ctx context.Context, s *side) error {
	defer s.noteChange(e.job)
	if e.edit != nil {
		return e.edit(ctx, s, e.job)
	}
	now := s.state(e.job)
	for _, class := range e.classes {
		i := slices.Index(now.classes, class)
		if i < 0 {
			return fmt.Errorf("no Pod of the class %s", class)
		}
		if err := e.pod(ctx, s, *now.pods[i]); err != nil {
			return err
		}
		now.classes[i] = "" // another one next
	}
	return nil
}

// script draws what happens to a Job.
type script struct {
	rng  *rand.Rand
	job  string
	most sizes
}

// anyEvent draws an event that can happen now.
func (s script) anyEvent(now state) event {
	if s.rng.IntN(6) == 0 {
		return s.anyEdit(now)
	}
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	for range 50 {
		n := s.rng.IntN(total)
		for _, k := range kinds {
			if n -= k.weight; n >= 0 {
				continue
			}
			if classes := s.anyClasses(now, k); len(classes) > 0 {
				return event{what: k.what, job: s.job, classes: classes, pod: k.do}
			}
			break
		}
	}
	return s.anyEdit(now)
}

// anyClasses draws the classes of the Pods that the event hits, nil if there are none.
func (s script) anyClasses(now state, k kind) []string {
	found := now.fitting(now.thatFit(k))
	switch {
	case len(found) == 0 || k.several && !now.severalMayEnd() || k.adopted && ptr.Deref(now.spec.Suspend, false):
		return nil
	case k.several:
		s.rng.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
		return found[:1+s.rng.IntN(len(found))]
	}
	return []string{found[s.rng.IntN(len(found))]}
}

// fitting are the classes of the Pods that fit, each as often as there are such Pods. Those that
// would still count leave a suspended Job alone: the built-in can't end it, as the API server
// demands a start time.
func (s state) fitting(fits func(corev1.Pod) bool) []string {
	suspended := ptr.Deref(s.spec.Suspend, false)
	var found []string
	for i, p := range s.pods {
		if fits(*p) && !(suspended && len(p.Finalizers) > 0) {
			found = append(found, s.classes[i])
		}
	}
	return found
}

// thatFit are the Pods that the kind of event may hit, in this Job. With a limit for each index,
// none is adopted that has ended: an index could have failed and succeeded then, which the API
// server refuses, and the built-in would write the same status for ever.
func (s state) thatFit(k kind) func(corev1.Pod) bool {
	if !k.adopted || s.spec.BackoffLimitPerIndex == nil {
		return k.fits
	}
	return func(p corev1.Pod) bool { return workertest.Active(p) && k.fits(p) }
}

// severalMayEnd reports whether Pods can succeed one after the other without a rest in between:
// with a success policy it would matter how many of them a sync sees.
func (s state) severalMayEnd() bool { return s.spec.SuccessPolicy == nil }

// severalMayTerminate reports the same of deleted Pods that terminate: where only failed Pods are
// replaced, the ends of those that are tracked are failures, unless the Job has come to its
// outcome.
func (s state) severalMayTerminate() bool {
	counts := func(p corev1.Pod) bool { return deleting(p) && len(p.Finalizers) > 0 }
	return !s.replacesOnlyFailed() || s.ending || len(s.fitting(counts)) == 0
}

// A kind of event, how often it's chosen, and which Pods it may hit.
type kind struct {
	weight  int
	what    string
	fits    func(corev1.Pod) bool
	do      podEvent
	several bool // it may hit several Pods at a time
	adopted bool // it adds a Pod, which may have ended: not while the Job is suspended, see fitting
}

var kinds = []kind{
	{weight: 3, what: "run", fits: pending, do: func(ctx context.Context, s *side, p corev1.Pod) error { return s.Run(ctx, p) }},
	{weight: 5, what: "succeed", fits: workertest.Active, do: exit(0)},
	{weight: 2, what: "succeed", fits: workertest.Active, do: exit(0), several: true},
	{weight: 3, what: "fail", fits: workertest.Active, do: exit(1)},
	{weight: 2, what: "fail, to be ignored", fits: workertest.Active, do: exit(codeIgnore)},
	{weight: 1, what: "fail, to be counted", fits: workertest.Active, do: exit(codeCount)},
	{weight: 1, what: "fail, to fail more", fits: workertest.Active, do: exit(codeFail)},
	{weight: 1, what: "fail in the init container", fits: activeWith(initContainer), do: exitContainers(map[string]int32{initContainer: codeFail})},
	{weight: 1, what: "fail, and stop the sidecar", fits: activeWith(sidecar), do: exitContainers(map[string]int32{"main": 1, sidecar: codeStopped})},
	{weight: 1, what: "succeed, and stop the sidecar", fits: activeWith(sidecar), do: exitContainers(map[string]int32{sidecar: codeStopped})},
	{weight: 1, what: "disrupt", fits: workertest.Active, do: exit(codeDisrupted, corev1.DisruptionTarget)},
	{weight: 2, what: "delete", fits: workertest.Active, do: deletePod},
	{weight: 3, what: "terminate", fits: ending, do: terminate},
	{weight: 1, what: "succeed while being deleted", fits: deleting, do: exit(0)},
	{weight: 2, what: "force-delete", fits: anyPod, do: func(ctx context.Context, s *side, p corev1.Pod) error { return s.Remove(ctx, p) }},
	{weight: 2, what: "restart", fits: restartable, do: restart},
	{weight: 1, what: "restart the init containers of", fits: restartableInit, do: restartInit},
	{weight: 1, what: "add an orphan like", fits: workertest.Active, do: addOrphan, adopted: true},
	{weight: 1, what: "stop matching", fits: owned, do: stopMatching},
	{weight: 2, what: "match again", fits: released, do: matchAgain, adopted: true},
}
