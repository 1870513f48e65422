package group

import (
	"cmp"
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
	// order has the workers where Jobs are placed, see Places, and busy counts those where some run.
	order []string
	busy  int
}

// count is how many Jobs of a group are in a worker.
type count struct {
	placed, finished, leaving int
	// newest is since when the newest of those that were placed there is.
	newest time.Time
}

func (c *count) isPlace() bool { return c.placed != 0 || c.finished != 0 }

func (c *count) isBusy() bool { return c.placed > 0 || c.leaving > 0 }

// Replace takes over what has changed of one Job, which is nowhere before it joins the group and
// when it has left. It reports whether that may concern the others, and whether the group belongs
// to another worker now than to the one that it belonged to.
func (m *Members) Replace(before, next Member) (concerns, moves bool) {
	place, busy := m.first(), m.busy
	m.add(before, -1)
	m.add(next, 1)
	now := m.first()
	return now != place || m.busy != busy, place.Worker != "" && now.Worker != place.Worker
}

func (m *Members) first() (first Place) {
	if len(m.order) > 0 {
		first = m.place(m.order[0])
	}
	return first
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

// count changes the count of a worker, which then may have another place in the order.
func (m *Members) count(worker string, change func(*count)) {
	if m.at == nil {
		m.at = map[string]*count{}
	}
	c := m.at[worker]
	if c == nil {
		c = &count{}
		m.at[worker] = c
	}
	m.busy -= one(c.isBusy())
	if i, is := slices.BinarySearchFunc(m.order, worker, m.compare); is {
		m.order = slices.Delete(m.order, i, i+1)
	}
	change(c)
	m.busy += one(c.isBusy())
	if c.isPlace() {
		i, _ := slices.BinarySearchFunc(m.order, worker, m.compare)
		m.order = slices.Insert(m.order, i, worker)
	} else if c.leaving == 0 {
		delete(m.at, worker)
	}
}

// compare is by who runs, then the newest first.
func (m *Members) compare(a, b string) int {
	x, y := m.at[a], m.at[b]
	return cmp.Or(cmp.Compare(one(y.placed > 0), one(x.placed > 0)), y.newest.Compare(x.newest), cmp.Compare(b, a))
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

// Workers is in how many workers Jobs of the group are, or were.
func (m *Members) Workers() int { return len(m.at) }

// Has reports whether a worker is one of these.
func (m *Members) Has(worker string) bool { return m.at[worker] != nil }

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
	places := make([]Place, 0, len(m.order))
	for _, name := range m.order {
		places = append(places, m.place(name))
	}
	return places
}

func (m *Members) place(worker string) Place { return Place{worker, m.at[worker].placed > 0} }

// Elsewhere is a worker other than a Job's in which other Jobs of its group are, or may still run;
// empty: there is none. own is that Job.
func (m *Members) Elsewhere(own Member) (worker string) {
	for name, c := range m.at {
		others := c.placed + c.leaving
		if !own.Finished {
			others -= one(own.On == name) + one(own.Leaves == name)
		}
		if others > 0 && name != own.On && (worker == "" || name < worker) {
			worker = name
		}
	}
	return worker
}

// IsOver reports whether all Jobs of the group have finished, or are placed nowhere.
func (m *Members) IsOver() bool { return m.busy == 0 }
