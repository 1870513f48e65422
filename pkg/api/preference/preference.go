package preference

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobferry/jobferry/pkg/util/selectors"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

// Preference is the order in which a user wants clusters. Nil: all are alike.
type Preference struct {
	steps []step
	// returns: a Job goes back to a cluster of an earlier step that has had room for it for this long.
	returns   bool
	returning time.Duration
}

type step struct {
	selector labels.Selector
	// after is how long the Job waits before the step opens.
	after time.Duration
}

// None is the step of a cluster that no step selects.
const None = -1

// StepOf returns the step that a cluster belongs to, from 0, and when it opens for a Job that has
// waited since some time. A cluster that no step selects has None.
func (p *Preference) StepOf(cluster labels.Set, since time.Time) (int, time.Time) {
	if p == nil {
		return 0, time.Time{}
	}
	for i, s := range p.steps {
		if s.selector.Matches(cluster) {
			return i, since.Add(s.after)
		}
	}
	return None, time.Time{}
}

// Opens is how long it takes until the next step opens for a Job that has waited since some time;
// never if all are open.
func (p *Preference) Opens(since, now time.Time) time.Duration {
	if p == nil {
		return 0
	}
	for _, s := range p.steps {
		if wait := wake.Until(since.Add(s.after), now); wait != 0 {
			return wait
		}
	}
	return 0
}

// Returns says how long a cluster of an earlier step must have had room for a Job before that goes
// back there; false: it stays where it is.
func (p *Preference) Returns() (time.Duration, bool) {
	if p == nil {
		return 0, false
	}
	return p.returning, p.returns
}

// Size is about how many bytes a preference takes in memory.
func (p *Preference) Size() (bytes int) {
	if p == nil {
		return 0
	}
	for _, s := range p.steps {
		bytes += selectors.Size(s.selector)
	}
	return bytes
}

// Before is the preference with only the steps before that of a cluster. Nil: there is none.
func (p *Preference) Before(cluster labels.Set) *Preference {
	step, _ := p.StepOf(cluster, time.Time{})
	if p == nil || step == 0 {
		return nil
	}
	if step == None {
		step = len(p.steps)
	}
	return &Preference{steps: p.steps[:step]}
}
