package view

import (
	"regexp"
	"time"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/plugin/show"
)

// named is a worker's name in an event's message.
var named = regexp.MustCompile(`[Ww]orker "?([a-z0-9](?:[-a-z0-9.]*[a-z0-9])?)"?`)

// workersIn returns the first two workers that a message names, in its order.
func workersIn(message string) (workers []string) {
	for _, match := range named.FindAllStringSubmatch(message, 2) {
		workers = append(workers, match[1])
	}
	return workers
}

// eventChanges are what the hub's events about the Job mean for the lanes.
var eventChanges = map[string]func(string) func(*tracks, time.Time){
	v1alpha1.EventPlaced:      func(message string) func(*tracks, time.Time) { return onWorkers(message, placeOn) },
	v1alpha1.EventMirrored:    func(message string) func(*tracks, time.Time) { return onWorkers(message, placeOn) },
	v1alpha1.EventMoving:      func(message string) func(*tracks, time.Time) { return onWorkers(message, in(spanStopping)) },
	v1alpha1.EventLost:        func(message string) func(*tracks, time.Time) { return onWorkers(message, in(spanOutOfTouch)) },
	v1alpha1.EventOutOfTouch:  func(message string) func(*tracks, time.Time) { return onWorkers(message, in(spanOutOfTouch)) },
	v1alpha1.EventPodsWaiting: func(message string) func(*tracks, time.Time) { return onWorkers(message, in(spanStarting)) },
	v1alpha1.EventMoved:       moved,
	v1alpha1.EventPending:     pending,
	v1alpha1.EventSuspended: func(string) func(*tracks, time.Time) {
		return func(t *tracks, at time.Time) { t.all(spanSuspended, at) }
	},
	v1alpha1.EventResumed: func(string) func(*tracks, time.Time) {
		return func(t *tracks, at time.Time) { t.resume(at) }
	},
}

// onWorkers does something in the lane of the first worker that the message names.
func onWorkers(message string, do func(worker string) func(*tracks, time.Time)) func(*tracks, time.Time) {
	workers := workersIn(message)
	return func(t *tracks, at time.Time) {
		if len(workers) == 0 {
			return
		}
		do(workers[0])(t, at)
		if s := t.lane(workers[0]).open(); s != nil && s.Why == "" {
			s.Why = show.Printable(message)
		}
	}
}

// placeOn ends the wait on the hub, and starts the Job in a worker.
func placeOn(worker string) func(*tracks, time.Time) {
	return func(t *tracks, at time.Time) {
		suspended := false
		if s := t.lane(hubLane).open(); s != nil {
			suspended = s.State == spanSuspended
		}
		t.lane(hubLane).leave(at)
		if t.lane(worker).open() != nil {
			return
		}
		if suspended { // Kueue's Jobs are placed before they are resumed
			t.enter(worker, spanSuspended, at)
			return
		}
		t.enter(worker, spanStarting, at)
	}
}

// in enters a state in a worker's lane, if the Job is there.
func in(state string) func(worker string) func(*tracks, time.Time) {
	return func(worker string) func(*tracks, time.Time) {
		return func(t *tracks, at time.Time) {
			if t.lane(worker).open() != nil {
				t.enter(worker, state, at)
			}
		}
	}
}

// run is the start of the first Pod in a worker.
func run(worker string) func(*tracks, time.Time) {
	return func(t *tracks, at time.Time) {
		if s := t.lane(worker).open(); s == nil || s.State == spanStarting {
			t.lane(hubLane).leave(at)
			t.enter(worker, spanRunning, at)
		}
	}
}

func leave(worker string) func(*tracks, time.Time) {
	return func(t *tracks, at time.Time) { t.lane(worker).leave(at) }
}

// moved ends the first worker's lane, and starts the second's.
func moved(message string) func(*tracks, time.Time) {
	workers := workersIn(message)
	return func(t *tracks, at time.Time) {
		if len(workers) < 2 {
			return
		}
		leave(workers[0])(t, at)
		placeOn(workers[1])(t, at)
		if s := t.lane(workers[1]).open(); s != nil {
			s.Why = show.Printable(message)
		}
	}
}

// pending is the reason for the wait on the hub.
func pending(message string) func(*tracks, time.Time) {
	return func(t *tracks, _ time.Time) {
		if s := t.lane(hubLane).open(); s != nil {
			s.Why = show.Printable(message)
		}
	}
}
