package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/placement"
)

// player is a scheduler.
type player interface {
	// play plays some games. Their ids must differ from those of all others that are played at the
	// same time.
	play(ctx context.Context, games []*game)
	stop() error
}

// game is one pair that a scheduler plays.
type game struct {
	pair *pair
	id   string
	seed uint64
	// minor is the scheduler's release: Kubernetes 1.minor.
	minor int
	// at is the pair under its id, which keeps it apart from others.
	at   *pair
	want int64

	answer placement.Answer
	// bound is how many of the Job's Pods the scheduler has bound, empty whether it binds one in
	// the empty cluster; not known if some were bound before.
	bound   int64
	empty   bool
	message string
	// sure: all Pods fit now, we say. asymmetric: what we say of a group depends on which Job asks.
	sure, asymmetric bool
	// never is the Job of the group that never fits, if one doesn't; found are those of which the
	// scheduler has bound a Pod, at least in the empty cluster.
	never string
	found map[string]bool
	// err is why the pair couldn't be played.
	err error
}

// ask is for our answer, when the pair is as the scheduler has it.
func (g *game) ask(namespaces []*corev1.Namespace) {
	s := g.at.snapshot(namespaces, g.minor)
	g.want = 0
	for _, j := range g.at.jobs() {
		g.want += int64(*j.Spec.Parallelism)
	}
	if len(g.at.Mates) > 0 {
		g.askGroup(s)
		return
	}
	g.answer = placement.NewJob(g.at.Job).Judge(s, g.want)
	g.sure, g.never = g.answer.Now >= g.want, g.at.Job.Name
	g.find(nil)
}

// find notes the Jobs of Pods that were bound.
func (g *game) find(pods []string) {
	if g.found == nil {
		g.found = map[string]bool{}
	}
	for _, name := range pods {
		g.found[jobOf(name)] = true
	}
	if len(g.at.Mates) == 0 && (g.bound > 0 || g.empty) {
		g.found[g.at.Job.Name] = true
	}
}

// difference is empty where the scheduler agrees.
func (g *game) difference() difference {
	switch {
	case g.answer.NeverFits() && g.found[g.never]:
		return falseNever
	case g.sure && g.bound < g.want:
		return falseNow
	case g.asymmetric:
		return asymmetric
	case !g.sure && g.bound >= g.want:
		return tooCareful
	case !g.answer.NeverFits() && g.bound == 0 && !g.empty:
		return unproven
	default:
		return ""
	}
}

// difference between our answer and the scheduler's deeds.
type difference string

const (
	falseNever difference = "we say never, and the scheduler binds Pods"
	falseNow   difference = "we say that all fit now, and the scheduler doesn't bind all"
	tooCareful difference = "we say that fewer fit now, and the scheduler binds all"
	asymmetric difference = "what we say of a group depends on which Job asks"
	unproven   difference = "we say that it fits later, and the scheduler binds none in the empty cluster"
)

func (g *game) String() string {
	return fmt.Sprintf("ours: %v, %d of %d Pods now, %d idle, all sure %t, reasons %v\nscheduler: bound %d, empty cluster %v: %s\n%s",
		g.answer.Verdict, g.answer.Now, g.want, g.answer.Idle, g.sure, g.answer.Reasons, g.bound, g.empty, g.message, g.pair)
}
