package checker

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Pending are the Jobs that have not come to their end yet.
func (c *Checker) Pending() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(c.records)) {
		if !c.records[name].settled() {
			names = append(names, name)
		}
	}
	return names
}

// settled: the Job has ended, and is gone if it had to go.
func (r *record) settled() bool {
	if r.story.End.Gone {
		return r.hub == nil && (r.ended != nil || r.deletes)
	}
	return r.ended != nil
}

// CheckEnds holds each Job against its story, after the last fault, when all have settled or had the time for it.
func (c *Checker) CheckEnds(at time.Duration) {
	for _, name := range slices.Sorted(maps.Keys(c.records)) {
		c.checkEnd(at, c.records[name])
	}
}

func (c *Checker) checkEnd(at time.Duration, r *record) {
	if !r.settled() {
		c.violate(at, Lost, r, "has not come to its end; on the hub: %s", r.whereabouts())
		return
	}
	if r.ended == nil {
		return // deleted before its end
	}
	if wrong := r.story.End.Differences(r.ended, r.circumstances()); len(wrong) > 0 {
		c.violate(at, Ends, r, "%s", strings.Join(wrong, "; "))
	}
}

func (r *record) whereabouts() string {
	if r.hub == nil {
		return "not there"
	}
	return describeJob(r.hub)
}

// Names of all Jobs that have a time line.
func (c *Checker) Names() []string { return slices.Sorted(maps.Keys(c.records)) }

// Lines are the time line of a Job.
func (c *Checker) Lines(job string) []Line {
	if r := c.records[job]; r != nil {
		return r.lines
	}
	return nil
}
