package waiting

import (
	"bytes"
	"iter"
	"math"
	"slices"
	"sync"
)

// Needs are what a Job lacks, by worker. Very many Jobs may wait for many workers, and most lack
// the same in all of them: that is kept once, and a byte for each worker.
type Needs struct {
	// different are all that it lacks somewhere. of has for each worker, by its number, which of them
	// it is, from one on; zero: the worker can't have room for it.
	different []Need
	of        []uint8
}

// numbers are those of workers that a Job has waited for. They're never forgotten: there are few
// names.
var numbers struct {
	sync.Mutex
	of    map[string]int
	names []string
}

// numberOf is the number of a worker, and all are the names of those that have one, by number.
func numberOf(worker string) (number int, all []string) {
	numbers.Lock()
	defer numbers.Unlock()
	number, known := numbers.of[worker]
	if !known {
		if numbers.of == nil {
			numbers.of = map[string]int{}
		}
		number = len(numbers.names)
		numbers.of[worker], numbers.names = number, append(numbers.names, worker)
	}
	return number, numbers.names
}

// Get returns what a Job lacks in a worker; false: the worker can't have room for it.
func (n *Needs) Get(worker string) (need Need, possible bool) {
	numbers.Lock()
	number, known := numbers.of[worker]
	numbers.Unlock()
	if !known || number >= len(n.of) || n.of[number] == 0 {
		return Need{}, false
	}
	return n.different[n.of[number]-1], true
}

// Set takes over what a Job lacks in a worker.
func (n *Needs) Set(worker string, need Need) {
	number, all := numberOf(worker)
	if missing := len(all) - len(n.of); missing > 0 {
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
	numbers.Lock()
	names := numbers.names
	numbers.Unlock()
	return func(yield func(string, Need) bool) {
		for number, place := range n.of {
			if place > 0 && !yield(names[number], n.different[place-1]) {
				return
			}
		}
	}
}
