package checker

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// strays asks about a running Pod and those of other Jobs of its group that seem to run in other
// workers. As with suspects, the other is asked for first.
func (c *Checker) strays(r *record, p *pod) (questions []Question) {
	for _, mate := range c.groups[r.story.Group()] {
		if mate == r {
			continue
		}
		for _, other := range mate.pods {
			pair := [2]types.UID{min(p.uid, other.uid), max(p.uid, other.uid)}
			if !other.running || other.where == p.where || r.asked[pair] {
				continue
			}
			r.asked[pair], mate.asked[pair] = true, true
			questions = append(questions, Question{Rule: Apart, Job: r.story.Name, Pods: []PodRef{other.ref(), p.ref()}})
		}
	}
	return questions
}

// answerApart takes in whether Pods of two Jobs of a group run in two workers. What excuses the Pod
// of one Job, if that ran in two workers, excuses this, too. So does the end of a Job, or its
// deletion: its Pods may outlast it.
func (c *Checker) answerApart(at time.Duration, q Question, answer Running) {
	r := c.records[q.Job]
	r.note(at, "checker", fmt.Sprintf("is this %s: %s, %s? %s", q.Rule, q.Pods[0], q.Pods[1], answer))
	if answer != AllRun {
		return
	}
	for _, ref := range q.Pods {
		for _, of := range c.groups[r.story.Group()] {
			if of.pods[ref.UID] == nil {
				continue
			}
			excuse := c.excuseOf(of, Question{Rule: Apart, Pods: []PodRef{ref}}, at)
			if of.ended != nil || of.deletes {
				excuse = "the Job has ended, or is deleted"
			}
			if excuse != "" {
				r.note(at, "checker", "its group runs in two workers at once: "+excuse)
				return
			}
		}
	}
	c.violate(at, Apart, r, "Pods of one group run in two workers at once: %s, %s", q.Pods[0], q.Pods[1])
}
