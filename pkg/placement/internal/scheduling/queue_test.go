package scheduling

import (
	"testing"

	"pgregory.net/rapid"
)

// closing refuses the groups that are closed.
type closing struct {
	state
	closed map[int]bool
}

func (c closing) check(p *place) *Reason {
	if c.closed[p.index] {
		return &spreadUnmet
	}
	return nil
}

// preferred looks at every group.
func preferred(groups []group, prefer order, closed map[int]bool) int {
	best := none
	for i := range groups {
		if prefer == last {
			i = len(groups) - 1 - i
		}
		g := &groups[i]
		if g.slots == 0 || closed[i] {
			continue
		}
		if best == none || prefer == mostSlots && g.slots > groups[best].slots || prefer == fewestSlots && g.slots <= groups[best].slots {
			best = i
		}
	}
	return best
}

// Whatever was taken and refused before, the next group is the preferred one of those that are
// open.
func TestQueueHasThePreferredGroupFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		groups := make([]group, rapid.IntRange(1, 6).Draw(t, "groups"))
		for i := range groups {
			groups[i] = group{&place{index: i}, int64(rapid.IntRange(1, 3).Draw(t, "slots"))}
		}
		prefer := rapid.SampledFrom([]order{mostSlots, fewestSlots, first, last}).Draw(t, "order")
		q, closed := newQueue(groups, prefer), map[int]bool{}
		for {
			got, want := q.next([]state{closing{closed: closed}}), preferred(q.groups, prefer, closed)
			if got != want {
				t.Fatalf("group %d is next, want %d; slots %v, closed %v", got, want, q.groups, closed)
			}
			if got == none {
				break
			}
			q.take(got)
			switch g := rapid.IntRange(0, len(groups)-1).Draw(t, "group"); {
			case rapid.Bool().Draw(t, "closes"):
				closed[g] = true
			default:
				delete(closed, g)
				q.retry()
			}
		}
		if left := preferred(q.groups, first, closed); left != none {
			t.Errorf("group %d is left", left)
		}
	})
}
