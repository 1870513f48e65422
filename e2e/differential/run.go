package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/worker/workertest"
)

const (
	steps     = 12               // random events of a script
	timeout   = 30 * time.Second // for both sides to come to rest in the same state
	lastSteps = 40               // events that drive a Job to its end
	attempts  = 5                // to run a seed again without Pods of another order of age
)

// result is how a seed's run went.
type result struct {
	seed       uint64
	log        []string
	difference string // empty: none
	ended      bool   // the Job came to its end, on both sides
	apart      bool   // for a time the Pods were of another order of age on one side: a difference may come from that
	err        error  // the run couldn't be done
}

// run runs one seed on both sides.
type run struct {
	builtIn, embedded *side
	job               string
	rest              time.Duration
	log               []string
	apart             bool
}

// errDiffer: the sides don't agree.
type errDiffer struct{ builtIn, embedded string }

func (e errDiffer) Error() string {
	return fmt.Sprintf("built-in:\n%s\nembedded:\n%s", e.builtIn, e.embedded)
}

func play1(ctx context.Context, builtIn, embedded *side, seed uint64, attempt int, rest time.Duration) result {
	r := &run{builtIn: builtIn, embedded: embedded, job: fmt.Sprintf("seed-%d-%d", seed, attempt), rest: rest}
	out := result{seed: seed}
	var differ errDiffer
	if err := r.play(ctx, rand.New(rand.NewPCG(seed, 0))); errors.As(err, &differ) {
		out.difference = err.Error()
	} else if err != nil {
		out.err = err
	}
	out.log, out.apart, out.ended = r.log, r.apart, builtIn.state(r.job).done
	return out
}

func (r *run) play(ctx context.Context, rng *rand.Rand) error {
	job := anyJob(rng, r.job)
	for _, s := range r.sides() {
		if _, err := s.Client.BatchV1().Jobs(namespace).Create(ctx, job, metav1.CreateOptions{}); err != nil {
			return err
		}
		s.noteChange(r.job)
	}
	now, err := r.settle(ctx)
	for step := 0; err == nil && step < steps && !now.done; step++ {
		now, err = r.step(ctx, anyEvent(rng, r.job, now))
	}
	for step := 0; err == nil && step < lastSteps && !now.done; step++ {
		now, err = r.step(ctx, r.towardsTheEnd(now))
	}
	if err != nil {
		return err
	}
	return r.compareEvents(ctx)
}

func (r *run) sides() []*side { return []*side{r.builtIn, r.embedded} }

// step has an event happen on both sides, and waits for their rest.
func (r *run) step(ctx context.Context, e event) (state, error) {
	r.log = append(r.log, e.String())
	for _, s := range r.sides() {
		if err := e.apply(ctx, s); err != nil {
			return state{}, fmt.Errorf("%s in %s: %w", e, s.name, err)
		}
	}
	return r.settle(ctx)
}

// settle waits until both sides are at rest in the same state.
func (r *run) settle(ctx context.Context) (state, error) {
	deadline := time.Now().Add(timeout)
	for {
		a, b := r.builtIn.state(r.job), r.embedded.state(r.job)
		changedA, nextA := r.builtIn.lastChange(r.job)
		changedB, nextB := r.embedded.lastChange(r.job)
		last := changedA
		if changedB.After(last) {
			last = changedB
		}
		quiet := time.Since(last)
		if a.String() == b.String() && quiet >= r.rest {
			r.log = append(r.log, a.String())
			r.apart = r.apart || order(a.pods) != order(b.pods)
			return a, nil
		}
		if time.Now().After(deadline) {
			return state{}, errDiffer{a.String(), b.String()}
		}
		timer := time.NewTimer(max(r.rest-quiet, 100*time.Millisecond))
		select {
		case <-nextA:
		case <-nextB:
		case <-timer.C:
		case <-ctx.Done():
			return state{}, ctx.Err()
		}
		timer.Stop()
	}
}

// towardsTheEnd is the next event of those that let a Job finish: nothing holds it back, and every
// Pod ends.
func (r *run) towardsTheEnd(now state) event {
	switch {
	case ptr.Deref(now.spec.Suspend, false):
		return event{what: "resume", job: r.job, patch: `{"spec":{"suspend":false}}`}
	case *now.spec.Parallelism == 0:
		return event{what: "run two at a time", job: r.job, patch: `{"spec":{"parallelism":2}}`}
	}
	for _, k := range []kind{
		{what: "terminate", fits: deleting, do: func(ctx context.Context, s *side, p corev1.Pod) error { return s.Terminate(ctx, p) }},
		{what: "succeed", fits: workertest.Active, do: exit(0)},
	} {
		if i := slices.IndexFunc(now.pods, func(p *corev1.Pod) bool { return k.fits(*p) }); i >= 0 {
			return event{what: k.what, job: r.job, class: now.classes[i], pod: k.do}
		}
	}
	return event{what: "nothing to do", job: r.job, patch: `{}`}
}

// compareEvents compares which reasons the events about the Job have. Controllers write events in
// their own time.
func (r *run) compareEvents(ctx context.Context) error {
	deadline := time.Now().Add(2 * timeout)
	for {
		a, err := r.builtIn.reasons(ctx, r.job)
		if err != nil {
			return err
		}
		b, err := r.embedded.reasons(ctx, r.job)
		if err != nil || a == b {
			return err
		}
		if time.Now().After(deadline) {
			return errDiffer{"events:\n" + a, "events:\n" + b}
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// reasons are those of the events about a Job, each once.
func (s *side) reasons(ctx context.Context, job string) (string, error) {
	list, err := s.Client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Job,involvedObject.name=" + job})
	if err != nil {
		return "", err
	}
	var all []string
	for _, e := range list.Items {
		all = append(all, e.Type+" "+e.Reason+" from "+e.Source.Component)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), "\n"), nil
}
