package places

// part is which part of the free places a holder may have: a quarter.
const part = 4

// Shared are places for which nobody waits. A holder gets one more only while it has less than a
// quarter of those that are free. So one holder gets a fifth of all at most, those that come after
// it less and less, and of 1000 places there is one for the next holder after 25 that have taken
// all they could. One goroutine at a time may use it.
type Shared struct {
	all, taken int
	of         map[string]int
}

// NewShared returns a number of places.
func NewShared(all int) *Shared { return &Shared{all: all, of: map[string]int{}} }

// Take takes a place for a holder, if there is one.
func (s *Shared) Take(holder string) bool {
	if part*s.of[holder] >= s.Free() {
		return false
	}
	s.of[holder]++
	s.taken++
	return true
}

// Give gives a place back.
func (s *Shared) Give(holder string) {
	s.taken--
	if s.of[holder]--; s.of[holder] == 0 {
		delete(s.of, holder)
	}
}

// Pass gives a holder's place to another one.
func (s *Shared) Pass(from, to string) {
	s.of[to]++
	s.taken++
	s.Give(from)
}

// Of is how many places a holder has.
func (s *Shared) Of(holder string) int { return s.of[holder] }

// Free is how many nobody has.
func (s *Shared) Free() int { return s.all - s.taken }

// Holders is how many have places.
func (s *Shared) Holders() int { return len(s.of) }
