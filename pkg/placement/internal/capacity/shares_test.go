package capacity

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
)

// However many namespaces have much to be compared, all go on, and those that come have a share.
func TestNamespacesShareComparisons(t *testing.T) {
	s := newShares()
	const namespaces, each = 50, 300_000
	done := map[string]int{}
	for range 200 {
		s.refill(namespaces + 1)
		all := 0
		for i := range namespaces + 1 {
			namespace := fmt.Sprint(i)
			if i == namespaces {
				namespace = "cheap"
			}
			for cost := each; s.allow(namespace); {
				if i == namespaces {
					cost = each / 100
				}
				s.count(namespace, cost)
				done[namespace] += cost
				all += cost
			}
		}
		if all > 2*maxComparisons+each {
			t.Fatalf("%d comparisons", all)
		}
	}
	fewest, most := slices.Min(slices.Collect(maps.Values(done))), slices.Max(slices.Collect(maps.Values(done)))
	if len(done) != namespaces+1 || fewest < most/10 {
		t.Errorf("%d namespaces have from %d to %d comparisons", len(done), fewest, most)
	}
}

// Very many namespaces have to find other nodes, and the first ones have so much to be compared
// that others aren't come to: these have a share the next time, too.
func TestNamespacesThatArentComeToHaveAShare(t *testing.T) {
	s := newStory(t, NewNode("gone").Has("cpu", "10k", "pods", "10k"))
	const namespaces, dear, nodes, work = 80, 40, 10, 10_000
	const each = 2 * maxComparisons / nodes / work
	for i := range namespaces {
		for k := range each {
			j := NewJob(fmt.Sprint(k)).Requests("cpu", fmt.Sprint(k+2))
			j.Obj().Namespace = fmt.Sprint(i)
			if s.Reserve(j.Key(), shape(j), 1); i >= dear {
				break
			}
		}
	}
	for _, j := range s.jobs {
		j.reservation.shape.work = work
	}
	s.manyNodes(nodes)
	s.DeleteNode("gone")
	for range 8 {
		s.Continue()
	}
	if n := s.queues.pending.Len(); n != dear {
		t.Errorf("%d namespaces have something left, want the %d that have much", n, dear)
	}
	if n := s.countPending(); n < dear*each*3/4 {
		t.Errorf("%d reservations are left: this shows nothing", n)
	}
}
