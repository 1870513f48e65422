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
	// err is why the pair couldn't be played.
	err error
}

// ask is for our answer, when the pair is as the scheduler has it.
func (g *game) ask(namespaces []*corev1.Namespace) {
	g.want = int64(*g.at.Job.Spec.Parallelism)
	g.answer = placement.NewJob(g.at.Job).Judge(g.at.snapshot(namespaces, g.minor), g.want)
}

// difference is empty where the scheduler agrees.
func (g *game) difference() difference {
	switch {
	case g.answer.NeverFits() && (g.bound > 0 || g.empty):
		return falseNever
	case g.answer.Now >= g.want && g.bound < g.want:
		return falseNow
	case g.answer.Now < g.want && g.bound >= g.want:
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
	unproven   difference = "we say that it fits later, and the scheduler binds none in the empty cluster"
)

func (g *game) String() string {
	return fmt.Sprintf("ours: %v, %d of %d Pods now, %d idle, reasons %v\nscheduler: bound %d, empty cluster %v: %s\n%s",
		g.answer.Verdict, g.answer.Now, g.want, g.answer.Idle, g.answer.Reasons, g.bound, g.empty, g.message, g.pair)
}
