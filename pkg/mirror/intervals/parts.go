package intervals

import "slices"

// Parts are together one set, to which very many can be added, each for little: those of about the
// same length become one. The zero value is the empty set.
type Parts []Set

// Add adds the indexes of a set.
func (p *Parts) Add(s Set) {
	for n := len(*p); n > 0 && len((*p)[n-1]) < 2*len(s); n-- {
		s = (*p)[n-1].Union(s)
		*p = (*p)[:n-1]
	}
	if len(s) > 0 {
		*p = append(*p, s)
	}
}

// Meet reports whether they have an index of a set.
func (p Parts) Meet(s Set) bool {
	return slices.ContainsFunc(p, func(part Set) bool { return len(s.Meeting(part)) > 0 })
}

// LeftOf returns the indexes of a set that they don't have.
func (p Parts) LeftOf(s Set) Set {
	for _, part := range p {
		s = s.Minus(part)
	}
	return s
}
