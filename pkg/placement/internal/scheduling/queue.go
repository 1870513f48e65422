package scheduling

import (
	"cmp"
	"slices"
)

// order in which one trial prefers groups.
type order int

// Orders that differ as much as they can: which one the scheduler takes isn't known.
const (
	mostSlots order = iota
	fewestSlots
	first
	last
)

// queue has the groups that have slots.
type queue struct {
	prefer order
	groups []group
	// inOrder of preference.
	inOrder []int
	// refused are those that refused a Pod. They take one only after retry.
	refused []bool
	// asked is how many groups were, whether they take a Pod.
	asked int
}

func newQueue(groups []group, prefer order) *queue {
	q := &queue{prefer: prefer, groups: slices.Clone(groups), inOrder: make([]int, len(groups)), refused: make([]bool, len(groups))}
	for i := range q.inOrder {
		q.inOrder[i] = i
	}
	slices.SortFunc(q.inOrder, q.compare)
	return q
}

func (q *queue) compare(a, b int) int {
	switch q.prefer {
	case mostSlots:
		return cmp.Or(cmp.Compare(q.groups[b].slots, q.groups[a].slots), cmp.Compare(a, b))
	case fewestSlots:
		return cmp.Or(cmp.Compare(q.groups[a].slots, q.groups[b].slots), cmp.Compare(b, a))
	case last:
		return cmp.Compare(b, a)
	default:
		return cmp.Compare(a, b)
	}
}

// next is the preferred group among those that take a Pod.
func (q *queue) next(states []state) int {
	for _, g := range q.inOrder {
		if q.refused[g] {
			continue
		}
		q.asked++
		if reasonOf(states, q.groups[g].first) == nil {
			return g
		}
		q.refused[g] = true
	}
	return none
}

// take puts a Pod on a group.
func (q *queue) take(g int) {
	i := slices.Index(q.inOrder, g)
	q.inOrder = slices.Delete(q.inOrder, i, i+1)
	if q.groups[g].slots--; q.groups[g].slots > 0 {
		i, _ = slices.BinarySearchFunc(q.inOrder, g, q.compare)
		q.inOrder = slices.Insert(q.inOrder, i, g)
	}
}

// retry asks the groups again that refused a Pod.
func (q *queue) retry() { clear(q.refused) }
