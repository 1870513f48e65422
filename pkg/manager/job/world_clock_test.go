package job

import (
	"time"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
)

// stepClock runs what is due after its time is set: a FakeClock holds its lock meanwhile, and whoever
// asks for the time would hang.
type stepClock struct {
	*testingclock.FakeClock
	due []func()
}

func newStepClock() *stepClock { return &stepClock{FakeClock: testingclock.NewFakeClock(noon)} }

func (c *stepClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	return c.FakeClock.AfterFunc(d, func() { c.due = append(c.due, f) })
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
