package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/worker/workertest"
)

const (
	steps     = 12               // random events of a script
	deleteOne = 40               // event in so many is the deletion of the Job
	timeout   = 30 * time.Second // for both sides to come to rest in the same state
	lastSteps = 3 * largest      // events that drive a Job to its end
	attempts  = 5                // to run a seed again without Pods of another order of age
)

// result is how a seed's run went.
type result struct {
	seed       uint64
	log        []string
	difference string // empty: none
	// for a time the Pods were of another order of age on one side: a difference may come from that
	apart bool
	err   error // the run couldn't be done
}

// run runs one seed on both sides.
type run struct {
	builtIn, embedded *side
	job               string
	rest              time.Duration
	log               []string
	large             bool
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
	out.log, out.apart = r.log, r.apart
	return out
}

func (r *run) play(ctx context.Context, rng *rand.Rand) error {
	job, most := anyJob(rng, r.job)
	r.large = most.completions == largest
	for _, s := range r.sides() {
		if _, err := s.Client.BatchV1().Jobs(namespace).Create(ctx, job, metav1.CreateOptions{}); err != nil {
			return err
		}
		s.noteChange(r.job)
	}
	now, err := r.settle(ctx, seen)
	script := script{rng, r.job, most}
	for step := 0; err == nil && step < steps && !now.done; step++ {
		if rng.IntN(deleteOne) == 0 {
			return r.delete(ctx, rng)
		}
		now, err = r.step(ctx, script.anyEvent(now), seen)
	}
	for step := 0; err == nil && step < lastSteps && !now.done; step++ {
		now, err = r.step(ctx, r.towardsTheEnd(now), seen)
	}
	if err == nil && !now.done {
		err = fmt.Errorf("the Job doesn't end in %d events", lastSteps)
	}
	if err == nil && job.Spec.TTLSecondsAfterFinished != nil {
		now, err = r.settle(ctx, leftToKubelets)
		if err == nil {
			err = r.vanish(ctx, now)
		}
	}
	if err != nil {
		return err
	}
	return r.compareEvents(ctx)
}

// delete deletes the Job, in any way, and lets its Pods end.
func (r *run) delete(ctx context.Context, rng *rand.Rand) error {
	// Before, as it's a race whether the Job controller sees a Pod's deletion by the garbage
	// collector.
	if err := r.compareEvents(ctx); err != nil {
		return err
	}
	policies := []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan}
	now, err := r.step(ctx, deleted(r.job, policies[rng.IntN(len(policies))]), leftToKubelets)
	if err != nil {
		return err
	}
	return r.vanish(ctx, now)
}

// vanish has the Pods that are being deleted end, for which the deletion of the Job may wait, and
// waits until the Job is gone.
func (r *run) vanish(ctx context.Context, now state) error {
	if classes := now.fitting(ending); len(classes) > 0 {
		_, err := r.step(ctx, event{what: "terminate", job: r.job, classes: classes, pod: terminate}, gone)
		return err
	}
	_, err := r.settle(ctx, gone)
	return err
}

func (r *run) sides() []*side { return []*side{r.builtIn, r.embedded} }

// step has an event happen on both sides, and waits for their rest.
func (r *run) step(ctx context.Context, e event, so func(state) bool) (state, error) {
	r.log = append(r.log, e.String())
	for _, s := range r.sides() {
		if err := e.apply(ctx, s); err != nil {
			return state{}, fmt.Errorf("%s in %s: %w", e, s.name, err)
		}
	}
	return r.settle(ctx, so)
}

// settle waits until both sides are at rest in the same state, which is so.
func (r *run) settle(ctx context.Context, so func(state) bool) (state, error) {
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
		if a.String() == b.String() && quiet >= r.rest && so(a) && so(b) {
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

// towardsTheEnd is the next event of a Job whose Pods shall all succeed.
func (r *run) towardsTheEnd(now state) event {
	switch {
	case ptr.Deref(now.spec.Suspend, false):
		return patched(r.job, "resume", `{"suspend":false}`)
	case *now.spec.Parallelism == 0:
		return patched(r.job, "run two at a time", `{"parallelism":2}`)
	}
	for _, end := range []struct {
		kind
		several bool
	}{
		{kind{what: "terminate", fits: ending, do: terminate}, now.severalMayTerminate()},
		{kind{what: "succeed", fits: workertest.Active, do: exit(0)}, now.severalMayEnd()},
	} {
		classes := now.fitting(end.fits)
		if len(classes) > 0 && !end.several {
			classes = classes[:1]
		}
		if len(classes) > 0 {
			return event{what: end.what, job: r.job, classes: classes, pod: end.do}
		}
	}
	return patched(r.job, "nothing to do", `{}`)
}

// compareEvents compares which reasons the events about the Job have. Controllers write events in
// their own time, and no more than 25 at once about one object: of a large Job any may be missing.
func (r *run) compareEvents(ctx context.Context) error {
	if r.large {
		return nil
	}
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
