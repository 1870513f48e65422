package view

import (
	"slices"
	"time"

	"github.com/jobferry/jobferry/pkg/plugin/show"
)

// hubLane is the lane in which a Job waits.
const hubLane = show.Hub

// change happens to the lanes at a time.
type change struct {
	at time.Time
	do func(t *tracks, at time.Time)
}

func (c change) apply(t *tracks) { c.do(t, c.at) }

// tracks are lanes that are being drawn. A lane's last span is open if its To is zero.
type tracks struct {
	lanes []Lane
	end   time.Time
}

// maxLanes bounds the lanes: anybody who may write events can name any number of workers.
const maxLanes = 50

// lane returns a lane of a name; of too many, one that isn't drawn.
func (t *tracks) lane(name string) *Lane {
	for i := range t.lanes {
		if t.lanes[i].Name == name {
			return &t.lanes[i]
		}
	}
	if len(t.lanes) == maxLanes {
		return &Lane{Name: name}
	}
	t.lanes = append(t.lanes, Lane{Name: name})
	return &t.lanes[len(t.lanes)-1]
}

// open returns the open span of a lane, or nil.
func (l *Lane) open() *Span {
	if n := len(l.Spans); n > 0 && l.Spans[n-1].To.IsZero() {
		return &l.Spans[n-1]
	}
	return nil
}

func (l *Lane) leave(at time.Time) {
	if s := l.open(); s != nil {
		s.To = slices.MaxFunc([]time.Time{at, s.From}, time.Time.Compare)
	}
}

// enter opens a span, unless the lane is in that state already.
func (t *tracks) enter(lane, state string, at time.Time) {
	l := t.lane(lane)
	if s := l.open(); s != nil && s.State == state {
		return
	}
	l.leave(at)
	l.Spans = append(l.Spans, Span{State: state, From: at})
}

// all enters a state in each worker that the Job is in, or, if it is in none, in the hub.
func (t *tracks) all(state string, at time.Time) {
	entered := false
	for _, l := range slices.Clone(t.lanes) {
		if l.Name != hubLane && l.open() != nil {
			t.enter(l.Name, state, at)
			entered = true
		}
	}
	if !entered {
		t.enter(hubLane, state, at)
	}
}

// close ends the open spans, and drops those without a length that another one follows, and lanes
// without spans.
func (t *tracks) close() []Lane {
	for i := range t.lanes {
		t.lanes[i].leave(t.end)
		spans := &t.lanes[i].Spans
		last := len(*spans) - 1
		kept := (*spans)[:0]
		for j, s := range *spans {
			if s.From = slices.MinFunc([]time.Time{s.From, t.end}, time.Time.Compare); s.To.After(t.end) {
				s.To = t.end
			}
			if j == last || s.To.After(s.From) {
				kept = append(kept, s)
			}
		}
		*spans = kept
	}
	return slices.DeleteFunc(t.lanes, func(l Lane) bool { return len(l.Spans) == 0 })
}

// resume continues the suspended lanes. A Job that is placed had Pods before, or has them soon.
func (t *tracks) resume(at time.Time) {
	for i := range t.lanes {
		l := &t.lanes[i]
		if s := l.open(); s != nil && s.State == spanSuspended {
			next := spanStarting
			if l.Name == hubLane {
				next = spanWaiting
			} else if slices.ContainsFunc(l.Spans, func(s Span) bool { return s.State == spanRunning }) {
				next = spanRunning
			}
			t.enter(l.Name, next, at)
		}
	}
}
