package state

import (
	"slices"
	"time"
)

// Step is something that the demo itself does, such as starting a cluster.
type Step struct {
	Name string
	// Note says how far it is, or what came out of it.
	Note         string
	Began, Ended time.Time
	Failed       bool
}

// Done says whether the step is over.
func (s Step) Done() bool { return !s.Ended.IsZero() }

// Took is how long the step has taken so far.
func (s Step) Took(now time.Time) time.Duration {
	if s.Done() {
		return s.Ended.Sub(s.Began)
	}
	return now.Sub(s.Began)
}

// StepBegan adds a step, unless it has begun already: steps that run at once are begun in their
// order beforehand.
func (s *State) StepBegan(name, note string, now time.Time) {
	if s.step(name) >= 0 {
		return
	}
	s.Steps = append(s.Steps, Step{Name: name, Note: note, Began: now})
}

// StepNote says how far a step is.
func (s *State) StepNote(name, note string) {
	if i := s.step(name); i >= 0 {
		s.Steps[i].Note = note
	}
}

// StepEnded ends a step. An empty note leaves the last one.
func (s *State) StepEnded(name, note string, failed bool, now time.Time) {
	i := s.step(name)
	if i < 0 {
		return
	}
	step := &s.Steps[i]
	step.Ended, step.Failed = now, failed
	if note != "" {
		step.Note = note
	}
}

// Preparing says whether a step is still under way, or none has begun.
func (s *State) Preparing() bool {
	return len(s.Steps) == 0 || slices.ContainsFunc(s.Steps, func(s Step) bool { return !s.Done() || s.Failed })
}

func (s *State) step(name string) int {
	return slices.IndexFunc(s.Steps, func(s Step) bool { return s.Name == name })
}
