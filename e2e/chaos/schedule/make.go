package schedule

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Options choose what is drawn.
type Options struct {
	// Faults is their number.
	Faults int
	// Span is the time in which they begin.
	Span time.Duration
	// Managers and Workers are the names of targets; the hub is Hub.
	Managers, Workers []string
	// Losing is how long a fault lasts that has a worker count as lost; zero: there are none.
	Losing time.Duration
	// Only these kinds; none: all.
	Only []Kind
}

// Hub is the target's name.
const Hub = "hub"

// losingShare: one of so many faults that may last long does, at least.
const losingShare = 3

// Make draws a schedule.
func Make(random *rand.Rand, o Options) ([]Fault, error) {
	rows, err := choose(o.Only)
	if err != nil {
		return nil, err
	}
	if len(o.Workers) == 0 || len(o.Managers) == 0 {
		return nil, errors.New("a schedule needs a worker and a manager")
	}
	d := deck{random: random, options: o, rows: rows, busy: map[string]time.Duration{}}
	faults := make([]Fault, 0, o.Faults)
	for n := range o.Faults {
		slot := o.Span / time.Duration(o.Faults)
		at := slot*time.Duration(n) + time.Duration(random.Int64N(int64(slot)+1))
		f := d.draw(at.Truncate(10 * time.Millisecond))
		f.Number = n + 1
		faults = append(faults, f)
	}
	return faults, nil
}

// Kinds are all kinds there are.
func Kinds() []Kind {
	var kinds []Kind
	for _, r := range table {
		kinds = append(kinds, r.kind)
	}
	return kinds
}

func choose(only []Kind) ([]row, error) {
	if len(only) == 0 {
		return table, nil
	}
	var rows []row
	for _, kind := range only {
		i := slices.IndexFunc(table, func(r row) bool { return r.kind == kind })
		if i < 0 {
			return nil, fmt.Errorf("no kind of fault %q; there are %s", kind, strings.Trim(fmt.Sprintf("%q", Kinds()), "[]"))
		}
		rows = append(rows, table[i])
	}
	return rows, nil
}

// deck is what is drawn from.
type deck struct {
	random  *rand.Rand
	options Options
	rows    []row
	// busy tells until when a part of a target has a fault.
	busy map[string]time.Duration
	// losing is until when a worker counts as lost.
	losing time.Duration
}

// draw draws a fault that begins at a time, or a little later if each part that it could hit has
// one already.
func (d *deck) draw(at time.Duration) Fault {
	for tries := 1; ; tries++ {
		r := d.row()
		target := d.target(r.role)
		if parts := d.parts(r, target); d.free(parts, at) && (!r.alone || at >= d.losing) {
			f := d.fault(r, target, at)
			for _, part := range parts {
				d.busy[part] = at + f.For + r.healing + pause
			}
			return f
		}
		if tries%100 == 0 {
			at += pause
		}
	}
}

// parts are what a fault hits.
func (d *deck) parts(r row, target string) []string {
	targets := []string{target}
	if r.everywhere {
		targets = d.options.Workers
	}
	var parts []string
	for _, target := range targets {
		parts = append(parts, target+" "+r.part)
	}
	for _, other := range table {
		if part := target + " " + other.part; r.whole && other.role == r.role && !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	for _, part := range r.besides {
		for _, worker := range d.options.Workers {
			if part := worker + " " + part; !slices.Contains(parts, part) {
				parts = append(parts, part)
			}
		}
	}
	return parts
}

func (d *deck) free(parts []string, at time.Duration) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return at < d.busy[part] })
}

// pause is the least time between two faults of one part.
const pause = time.Second

func (d *deck) row() row {
	total := 0
	for _, r := range d.rows {
		total += r.weight
	}
	n := d.random.IntN(total)
	for _, r := range d.rows {
		if n -= r.weight; n < 0 {
			return r
		}
	}
	return d.rows[0] // not reached
}

func (d *deck) target(of role) string {
	switch of {
	case manager:
		return d.options.Managers[d.random.IntN(len(d.options.Managers))]
	case worker:
		return d.options.Workers[d.random.IntN(len(d.options.Workers))]
	default:
		return Hub
	}
}

func (d *deck) fault(r row, target string, at time.Duration) Fault {
	f := Fault{Kind: r.kind, Target: target, At: at}
	if r.most > 0 {
		f.For = d.between(r.least, r.most)
	}
	if len(r.offsets) > 0 {
		f.Offset = r.offsets[d.random.IntN(len(r.offsets))]
	}
	if r.loses && d.options.Losing > 0 && at >= d.losing && d.random.IntN(losingShare) == 0 {
		f.Loses, f.For = true, d.between(d.options.Losing, d.options.Losing*5/4)
		d.losing = at + f.For + d.options.Losing/2
	}
	if r.alone { // it takes a while until it has begun
		d.losing = at + f.For + d.options.Losing
	}
	return f
}

// between draws a time in steps of 10 ms.
func (d *deck) between(least, most time.Duration) time.Duration {
	return least + time.Duration(d.random.Int64N(int64(most-least)+1)).Truncate(10*time.Millisecond)
}
