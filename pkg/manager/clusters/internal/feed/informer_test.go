package feed

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
)

// An API server that comes back after a long outage, and has no rules loaded yet, refuses since
// now, though requests have failed for long.
func TestARefusalBeginsWithTheFirstOne(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	i := &informer{changed: func() {}, clock: clock}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("no"))
	i.record(&i.watching, errors.New("connection refused"))
	clock.Step(time.Hour)
	i.record(&i.watching, forbidden)
	clock.Step(time.Second)
	for _, err := range []error{errors.New("internal error"), forbidden} {
		i.record(&i.watching, err)
		if last := i.lastFailure(); clock.Since(last.refused) != time.Second || clock.Since(last.since) != time.Hour+time.Second {
			t.Errorf("%+v", last)
		}
	}
	i.record(&i.watching, nil)
	i.record(&i.watching, errors.New("connection refused"))
	if last := i.lastFailure(); !last.refused.IsZero() {
		t.Errorf("after a success: %+v", last)
	}
}
