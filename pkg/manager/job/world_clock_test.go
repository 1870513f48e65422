package job

import (
	"slices"
	"time"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
)

// stepClock runs what is due after its time is set: a FakeClock holds its lock meanwhile, and
// whoever asks for the time would hang.
type stepClock struct {
	*testingclock.FakeClock
	due []func()
	// timers are when functions are due.
	timers []time.Time
}

func newStepClock() *stepClock { return &stepClock{FakeClock: testingclock.NewFakeClock(noon)} }

func (c *stepClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	c.timers = append(c.timers, c.Now().Add(d))
	return c.FakeClock.AfterFunc(d, func() { c.due = append(c.due, f) })
}

// next is when the first function is due; false: none is.
func (c *stepClock) next() (time.Time, bool) {
	c.timers = slices.DeleteFunc(c.timers, func(at time.Time) bool { return !at.After(c.Now()) })
	if len(c.timers) == 0 {
		return time.Time{}, false
	}
	return slices.MinFunc(c.timers, time.Time.Compare), true
}

func (c *stepClock) SetTime(t time.Time) {
	c.FakeClock.SetTime(t)
	for len(c.due) > 0 {
		f := c.due[0]
		c.due = c.due[1:]
		f()
	}
}

func (c *stepClock) Step(d time.Duration) { c.SetTime(c.Now().Add(d)) }

// priorityClasses are those of the hub.
type priorityClasses []schedulingv1.PriorityClass

func (c priorityClasses) get(name string, into *schedulingv1.PriorityClass) error {
	for i := range c {
		if c[i].Name == name {
			*into = c[i]
			return nil
		}
	}
	return apierrors.NewNotFound(schedulingv1.Resource("priorityclasses"), name)
}
