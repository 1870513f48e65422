package main

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

// program is a player: e2e/placement/scheduler, which is built from a release and runs beside us.
type program struct{ *binaries.Program }

// newProgram builds the scheduler of a release, if its source has changed, and runs it.
func newProgram(ctx context.Context, release string) (program, error) {
	p, err := binaries.StartOwn(ctx, binaries.Release(release), "placement/scheduler")
	return program{p}, err
}

func (p program) stop() error { return p.Stop() }

// play asks one game after the other.
func (p program) play(_ context.Context, games []*game) {
	for _, g := range games {
		g.err = p.playOne(g)
	}
}

// The request and the answer are those of the scheduler's main.go.
type (
	request struct {
		Namespaces      []*corev1.Namespace
		Nodes, Restored []*corev1.Node
		Pods, New       []*corev1.Pod
		Group           bool
		deviceObjects
		namespaceLimits
		volumeObjects
		classObjects
	}
	reply struct {
		Pods           []*corev1.Pod
		ResourceClaims []*resourcev1.ResourceClaim
		namespaceLimits
		Bound          int64
		Empty          bool
		Found          []string
		Message, Error string
	}
)

// playOne plays a group in several orders. The one of which the fewest Pods are bound counts.
func (p program) playOne(g *game) error {
	if err := p.playIn(0, g); err != nil || len(g.pair.Mates) == 0 {
		return err
	}
	bound, message := g.bound, g.message
	for order := 1; order < orders; order++ {
		if err := p.playIn(order, g); err != nil {
			return err
		}
		if g.bound < bound {
			bound, message = g.bound, g.message
		}
	}
	g.bound, g.message = bound, message
	return nil
}

func (p program) playIn(order int, g *game) error {
	g.at = g.pair.locate(g.id)
	g.at.asIn(g.minor)
	namespaces := location(g.id).namespaces()
	r := request{
		Namespaces: namespaces, Nodes: g.at.Nodes, Pods: g.at.Pods,
		deviceObjects: g.at.deviceObjects, namespaceLimits: g.at.namespaceLimits, volumeObjects: g.at.volumeObjects, classObjects: g.at.classObjects,
	}
	for _, node := range g.at.Nodes {
		if back := node.DeepCopy(); restore(back) {
			r.Restored = append(r.Restored, back)
		}
	}
	r.New, r.Group = g.at.pods(order), len(g.at.Mates) > 0
	var a reply
	if err := p.Ask(r, &a); err != nil {
		return fmt.Errorf("the scheduler doesn't answer: %w", err)
	}
	if a.Error != "" {
		return errors.New(a.Error)
	}
	g.at.Pods, g.at.ResourceClaims, g.at.namespaceLimits = a.Pods, a.ResourceClaims, a.namespaceLimits
	g.bound, g.empty, g.message = a.Bound, g.empty || a.Empty, a.Message
	g.find(a.Found)
	g.ask(namespaces)
	return nil
}
