package waiting

import (
	"bytes"
	"iter"
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

// Needs are what a Job lacks, by worker. Very many Jobs may wait for many workers, and most lack
// the same in all of them: that is kept once, and a byte for each worker.
type Needs struct {
	// numbers are those of the workers; nil: it lacks nothing anywhere.
	numbers *numbers
	// different are all that it lacks somewhere. of has for each worker, by its number, which of them
	// it is, from one on; zero: the worker can't have room for it.
	different []Need
	of        []uint8
}

// numbers are those of workers. They are never others: Jobs that were judged refer to them.
type numbers struct {
	sync.Mutex
	of    map[string]int
	names []string
	// gone counts the workers that were removed.
	gone int
}

func newNumbers() *numbers { return &numbers{of: map[string]int{}} }

// latest are the numbers for Jobs that are judged now.
var latest atomic.Pointer[numbers]

func init() { latest.Store(newNumbers()) }

// Forget is called when a worker was removed. When so many were that most numbers may be theirs,
// the Jobs that are judged from now on get other numbers.
func Forget(worker string) {
	n := latest.Load()
	n.Lock()
	defer n.Unlock()
	if _, known := n.of[worker]; !known {
		return
	}
	if n.gone++; n.gone > len(n.names)/2 {
		latest.CompareAndSwap(n, newNumbers())
	}
}

// get returns a worker's number; false: it has none.
func (n *numbers) get(worker string) (number int, known bool) {
	n.Lock()
	defer n.Unlock()
	number, known = n.of[worker]
	return number, known
}

// number returns a worker's number, and how many workers have one.
func (n *numbers) number(worker string) (number, all int) {
	n.Lock()
	defer n.Unlock()
	number, known := n.of[worker]
	if !known {
		number = len(n.names)
		n.of[worker], n.names = number, append(n.names, worker)
	}
	return number, len(n.names)
}

// all are the names of the workers, by number.
func (n *numbers) all() []string {
	n.Lock()
	defer n.Unlock()
	return n.names
}

// Get returns what a Job lacks in a worker; false: the worker can't have room for it.
func (n *Needs) Get(worker string) (need Need, possible bool) {
	if n.numbers == nil {
		return Need{}, false
	}
	number, known := n.numbers.get(worker)
	if !known || number >= len(n.of) || n.of[number] == 0 {
		return Need{}, false
	}
	return n.different[n.of[number]-1], true
}

// Set takes over what a Job lacks in a worker.
func (n *Needs) Set(worker string, need Need) {
	if n.numbers == nil {
		n.numbers = latest.Load()
	}
	number, all := n.numbers.number(worker)
	if missing := all - len(n.of); missing > 0 {
		n.of = append(n.of, make([]uint8, missing)...)
	}
	n.of[number] = 0
	n.of[number] = n.place(need)
}

// place returns the place of a need among those that are different, from one on. Should there be
// more of them than a byte can tell, any change is tried for the rest.
func (n *Needs) place(need Need) uint8 {
	place := slices.Index(n.different, need) + 1
	for unused := 1; place == 0 && unused <= len(n.different); unused++ {
		if bytes.IndexByte(n.of, byte(unused)) < 0 {
			place, n.different[unused-1] = unused, need
		}
	}
	switch {
	case place > 0:
	case len(n.different) < math.MaxUint8:
		n.different = append(n.different, need)
		place = len(n.different)
	default:
		place = math.MaxUint8
		n.different[place-1] = Need{Lacks: Other}
	}
	return uint8(place) //nolint:gosec // it's no more than that
}

// Len is how many workers may have room for the Job one day.
func (n *Needs) Len() int { return len(n.of) - bytes.Count(n.of, []byte{0}) }

// All are the workers that may have room for the Job one day, and what it lacks there.
func (n *Needs) All() iter.Seq2[string, Need] {
	var names []string
	if n.numbers != nil {
		names = n.numbers.all()
	}
	return func(yield func(string, Need) bool) {
		for number, place := range n.of {
			if place > 0 && !yield(names[number], n.different[place-1]) {
				return
			}
		}
	}
}
