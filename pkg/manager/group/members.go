package group

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Member is what is known of one Job of a group. Its zero value is nowhere.
type Member struct {
	// On is the worker that the Job is placed on; empty: none.
	On string
	// Since is when it was placed there.
	Since time.Time
	// Leaves is another worker where its Pods may still run; empty: there is none.
	Leaves string
	// Finished: it runs no more.
	Finished bool
}

// Members counts the Jobs of one group by worker. Its zero value has none.
type Members struct {
	at map[string]*count
}

// count is how many Jobs of a group are in a worker.
type count struct {
	placed, finished, leaving int
	// newest is since when the newest of those that were placed there is.
	newest time.Time
}

func (c *count) isEmpty() bool { return c.placed == 0 && c.finished == 0 && c.leaving == 0 }

// Replace takes over what has changed of one Job, which is nowhere before it joins the group and
// when it has left. It reports whether that may concern the others, and whether the group belongs
// to another worker now than to the one that it belonged to.
func (m *Members) Replace(before, next Member) (concerns, moves bool) {
	place, busy := m.first(), m.busy()
	m.add(before, -1)
	m.add(next, 1)
	now := m.first()
	return now != place || m.busy() != busy, place.Worker != "" && now.Worker != place.Worker
}

func (m *Members) first() (first Place) {
	if places := m.Places(); len(places) > 0 {
		first = places[0]
	}
	return first
}

// busy is in how many workers the group is.
func (m *Members) busy() (workers int) {
	for _, c := range m.at {
		if c.placed > 0 || c.leaving > 0 {
			workers++
		}
	}
	return workers
}

func (m *Members) add(member Member, by int) {
	if member.On != "" {
		m.count(member.On, func(c *count) {
			if c.newest.Before(member.Since) {
				c.newest = member.Since
			}
			if member.Finished {
				c.finished += by
			} else {
				c.placed += by
			}
		})
	}
	if member.Leaves != "" && !member.Finished {
		m.count(member.Leaves, func(c *count) { c.leaving += by })
	}
}

func (m *Members) count(worker string, change func(*count)) {
	if m.at == nil {
		m.at = map[string]*count{}
	}
	c := m.at[worker]
	if c == nil {
		c = &count{}
		m.at[worker] = c
	}
	if change(c); c.isEmpty() {
		delete(m.at, worker)
	}
}

// Place is a worker in which Jobs of a group are.
type Place struct {
	Worker string
	// Runs: some of them haven't finished.
	Runs bool
}

// Places are the workers where Jobs of the group are placed. The first is where all belong: the one
// of the newest placement of an unfinished Job, whatever others say. Halfway through a move, that's
// where the group goes.
func (m *Members) Places() []Place {
	names := slices.Collect(maps.Keys(m.at))
	names = slices.DeleteFunc(names, func(name string) bool { c := m.at[name]; return c.placed == 0 && c.finished == 0 })
	slices.SortFunc(names, func(a, b string) int {
		x, y := m.at[a], m.at[b]
		return cmp.Or(cmp.Compare(min(y.placed, 1), min(x.placed, 1)), y.newest.Compare(x.newest), cmp.Compare(b, a))
	})
	places := make([]Place, 0, len(names))
	for _, name := range names {
		places = append(places, Place{name, m.at[name].placed > 0})
	}
	return places
}

// Elsewhere is a worker other than a Job's in which other Jobs of its group are, or may still run;
// empty: there is none. own is that Job.
func (m *Members) Elsewhere(own Member) (worker string) {
	for name, c := range m.at {
		others := c.placed + c.leaving
		if !own.Finished {
			others -= isIn(own.On, name) + isIn(own.Leaves, name)
		}
		if others > 0 && name != own.On && (worker == "" || name < worker) {
			worker = name
		}
	}
	return worker
}

func isIn(worker, name string) int {
	if worker == name {
		return 1
	}
	return 0
}

// IsOver reports whether all Jobs of the group have finished, or are placed nowhere.
func (m *Members) IsOver() bool { return m.busy() == 0 }
