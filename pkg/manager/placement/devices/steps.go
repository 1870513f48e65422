package devices

import (
	"context"
	"errors"
)

// maxSteps bounds the allocator's search on one node. It tries each combination of devices, and a
// user's claim may have very many. What isn't found by then is taken to fit.
const maxSteps = 20_000

// maxTrialSteps bounds all searches for one Job together. For each node, the allocator looks through all
// slices, of which so many count as a step.
const (
	maxTrialSteps = 60_000
	slicesPerStep = 40
)

var errTooManySteps = errors.New("too many steps")

// steps is a context that is done after a number of steps, in each of which the allocator asks for its
// error. A clock would make answers depend on the machine.
type steps struct {
	context.Context
	left int
}

func (s *steps) Err() error {
	if s.left--; s.left < 0 {
		return errTooManySteps
	}
	return nil
}
