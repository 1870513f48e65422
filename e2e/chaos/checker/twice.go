package checker

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// PodRef names a Pod of a worker.
type PodRef struct {
	Where, Namespace, Name string
	UID                    types.UID
}

func (p PodRef) String() string { return p.Name + " of " + p.Where }

func (p *pod) ref() PodRef {
	return PodRef{Where: p.where, Namespace: p.namespace, Name: p.name, UID: p.uid}
}

// Question asks whether all of some Pods are running, each asked for after the one before.
type Question struct {
	Rule Rule
	Job  string
	Pods []PodRef
}

// Running is an answer to a question.
type Running string

// The answers.
const (
	// AllRun: each of them was found running.
	AllRun Running = "all run"
	// SomeEnded: one has ended, is another one, or is gone.
	SomeEnded Running = "some have ended"
	// NoAnswer: an API server couldn't be asked.
	NoAnswer Running = "no answer"
)

// suspects asks about a running Pod and those that seem to run in other workers. The other is asked
// for first: it ran before this one was seen, and if this one still runs after that, they ran at
// once.
func (r *record) suspects(p *pod) []Question {
	var questions []Question
	for _, other := range r.pods {
		pair := [2]types.UID{min(p.uid, other.uid), max(p.uid, other.uid)}
		if !other.running || other.where == p.where || r.asked[pair] || r.mayBoth(p, other) {
			continue
		}
		r.asked[pair] = true
		questions = append(questions, Question{Rule: Twice, Job: r.story.Name, Pods: []PodRef{other.ref(), p.ref()}})
	}
	return questions
}

// mayBoth reports whether two Pods may run in two workers at once: those of different indexes of
// one Job that its user lets run in several. Of a Job without indexes only the number of Pods that
// succeed tells what ran twice.
func (r *record) mayBoth(p, other *pod) bool {
	known := r.mirrors[p.owner] != "" && r.mirrors[other.owner] != ""
	return r.story.Divided() && (r.sameJob(p, other) || !known) && (p.index < 0 || p.index != other.index)
}

// Answer takes in the answer to a question.
func (c *Checker) Answer(at time.Duration, q Question, answer Running) {
	if q.Rule == Apart {
		c.answerApart(at, q, answer)
		return
	}
	r := c.records[q.Job]
	var names []string
	for _, p := range q.Pods {
		names = append(names, p.String())
	}
	r.note(at, "checker", fmt.Sprintf("is this %s: %s? %s", q.Rule, strings.Join(names, ", "), answer))
	if answer != AllRun || r.areSuccessive(q) {
		return
	}
	switch excuse := c.excuseOf(r, q, at); {
	case excuse != "":
		r.note(at, "checker", "runs in two workers at once: "+excuse)
		if !r.excused {
			r.excused = true
			c.figures.Excused++
		}
	case q.Rule == Again:
		c.violate(at, Again, r, "Pod %s runs, whose index the hub knows to be complete", names[0])
	default:
		c.violate(at, Twice, r, "runs in two workers at once: %s", strings.Join(names, ", "))
	}
}

// excuseOf says why Pods may run that shouldn't: in two workers at once, or after another one has
// completed their index. The worker that the Job, or its shard, was moved from must have been out
// of touch when it was; with a fence, that's no excuse as long as all that the fence needs was up.
func (c *Checker) excuseOf(r *record, q Question, at time.Duration) string {
	if excuse := c.madeForADeletedJob(r, q); excuse != "" {
		return excuse
	}
	for _, ref := range q.Pods {
		p := r.pods[ref.UID]
		restore := c.restoring(p.where, at)
		if restore == nil {
			continue
		}
		if p.goneAt != nil {
			return fmt.Sprintf("put back by %s at %s", restore.Fault, stamp(restore.From))
		}
		if excuse := c.excuseOfRestored(r, p, p); excuse != "" {
			return excuse
		}
	}
	for _, m := range slices.Backward(r.moves) {
		if !slices.ContainsFunc(q.Pods, func(p PodRef) bool { return m.tookAway(r.pods[p.UID]) }) {
			continue
		}
		if !c.workers[m.from].Fenced {
			return c.outOfTouch(m.from, m.at)
		}
		return c.crippled(m.from, m.at, at)
	}
	return ""
}

// areSuccessive: the Pods are of two Jobs that had the name one after another, and the first was
// deleted in the background. In any cluster its Pods end beside those of the second. That they do
// end, the rule Orphan holds.
func (r *record) areSuccessive(q Question) bool {
	first, second := r.mirrors[r.pods[q.Pods[0].UID].owner], r.mirrors[r.pods[q.Pods[len(q.Pods)-1].UID].owner]
	return r.story.ReplacedInBackground() && first != "" && second != "" && first != second
}

// atOnceAfter is how long after a mirror's deletion a Job controller that is up makes Pods for it
// at most, as it hasn't heard of the deletion.
const atOnceAfter = time.Second

// madeForADeletedJob: the Pods are of two Jobs that had the name one after another, and those of
// the first were made when it was being deleted already, by a Job controller that hadn't heard of
// that: it had just been frozen, or the deletion was a moment ago. In any cluster they run then
// until the garbage collector ends them; nobody can know beforehand that they will be made.
func (c *Checker) madeForADeletedJob(r *record, q Question) string {
	p, other := r.pods[q.Pods[0].UID], r.pods[q.Pods[len(q.Pods)-1].UID]
	if r.sameJob(p, other) {
		return ""
	}
	for _, p := range []*pod{p, other} {
		left, is := r.leaving[p.owner]
		if !is || p.seen <= left {
			continue
		}
		if p.seen-left <= atOnceAfter {
			return fmt.Sprintf("made %s after its Job's deletion", p.seen-left)
		}
		if excuse := c.find(p.where, p.seen, p.seen, freezesJobController); excuse != "" {
			return excuse
		}
	}
	return ""
}
