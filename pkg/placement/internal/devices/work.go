package devices

import (
	"context"
	"errors"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

// Work is counted in units of about a microsecond. A clock would make answers depend on the
// machine.
const (
	// searchWork bounds the search for one Pod on one node. The allocator tries each combination of
	// devices, and a user's claim may have very many.
	searchWork = 40_000
	// mostWork bounds all searches for one Job in one view. It comes down to leastWork for the Jobs of
	// a namespace that use it up again and again. What was found out is kept, so that the next
	// searches go on from there.
	mostWork, leastWork = 100_000, 5_000

	stepWork        = 2    // of the allocator, in which it asks its context for an error
	deviceWork      = 2    // to read a device
	requestWork     = 2    // for each request of a claim
	selectedPerWork = 5    // of what a selector of nodes has
	selectWork      = 9    // to evaluate a selector that costs nothing
	costPerWork     = 4    // of CEL's units of cost
	stateWork       = 1    // to note that a device is held
	copiedPerWork   = 8    // of such notes
	sharedPerWork   = 100  // of devices that claims share, which the allocator goes through for each device
	hashedPerWork   = 300  // of the bytes of what is asked for
	askedPerWork    = 10   // of a claim's selectors, for whose cost is asked
	compileWork     = 1500 // for each selector, and
	compileByteWork = 15   // for each byte of a long one
)

var errTooMuchWork = errors.New("too much work")

// budget is a context that is done after some work.
type budget struct {
	context.Context
	left, step int
}

func (b *budget) Err() error {
	if b.left -= b.step; b.left < 0 {
		return errTooMuchWork
	}
	return nil
}

// selectors are those of a claim's requests and their classes, with how often each is asked for.
func (d *Devices) selectors(spec *resourcev1.ResourceClaimSpec, visit func(expression string)) {
	each := func(class string, own []resourcev1.DeviceSelector) {
		if c, err := d.Get(class); err == nil {
			visitAll(c.Spec.Selectors, visit)
		}
		visitAll(own, visit)
	}
	for i := range spec.Devices.Requests {
		r := &spec.Devices.Requests[i]
		if r.Exactly != nil {
			each(r.Exactly.DeviceClassName, r.Exactly.Selectors)
		}
		for k := range r.FirstAvailable {
			each(r.FirstAvailable[k].DeviceClassName, r.FirstAvailable[k].Selectors)
		}
	}
}

func visitAll(selectors []resourcev1.DeviceSelector, visit func(string)) {
	for i := range selectors {
		if selectors[i].CEL != nil {
			visit(selectors[i].CEL.Expression)
		}
	}
}

// evaluation is the work of evaluating one device by all selectors of some claims. It compiles
// those that weren't compiled before, as far as the work that is left allows; false: there are too
// many.
func (t *trial) evaluation(claims []*resourcev1.ResourceClaim) (work int, few bool) {
	known, asked := map[string]int{}, 0
	for _, claim := range claims {
		if *t.left <= 0 {
			break
		}
		t.selectors(&claim.Spec, func(expression string) {
			if asked++; asked%askedPerWork == 0 {
				t.spend(1)
			}
			if _, is := known[expression]; !is && len(known) <= compiledSelectors && *t.left > 0 {
				known[expression] = t.memo.cost(expression, t.features.ConsumableCapacity, t.spend)
			}
			work = min(work+known[expression], mostWork)
		})
	}
	return work, len(known) <= compiledSelectors
}

// nodeOf is the node that alone reaches a slice's devices; empty: others may.
func nodeOf(s *resourcev1.ResourceSlice) string { return ptr.Deref(s.Spec.NodeName, "") }
