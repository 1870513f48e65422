package scheduling

import (
	"hash/maphash"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	operator "k8s.io/apimachinery/pkg/selection"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

// podSelector selects Pods by their labels. Embedded is the whole selector.
type podSelector struct {
	labels.Selector
	// shared is the part that reads what Pods of one kind share.
	shared labels.Selector
	// own is the part that reads their own labels; nil if there is none.
	own labels.Selector
	// work of one comparison with the labels of a Pod.
	work int
}

func podSelectorOf(whole labels.Selector) podSelector {
	s := podSelector{Selector: whole, shared: whole, work: workOf(whole)}
	requirements, _ := whole.Requirements()
	var shared, own labels.Requirements
	for _, r := range requirements {
		if ownKeys.Has(r.Key()) {
			own = append(own, r)
		} else {
			shared = append(shared, r)
		}
	}
	if len(own) > 0 {
		s.shared, s.own = labels.NewSelector().Add(shared...), labels.NewSelector().Add(own...)
	}
	return s
}

// workOf comparing labels with a selector.
func workOf(s labels.Selector) int {
	requirements, _ := s.Requirements()
	work := 0
	for i := range requirements {
		work += capacity.TermWeight + len(requirements[i].ValuesUnsorted())
	}
	return work
}

// selection of Pods that run. It is nil if none is selected.
type selection struct {
	// kinds are by their indexes.
	kinds []bool
	// own selects some of their Pods; nil: all.
	own labels.Selector
	// values are hashes of those of which each of these Pods has one; nil if there are none such.
	values []uint64
	// work of a comparison with a Pod's own labels, for a field of the Job.
	work  int
	field string
}

// selectPods asks once for each kind of the namespaces that are covered, and keeps the selectors
// over Pods' own labels. A judgement does so once for a selector, whatever views it takes: the
// kinds are the same in each.
func (v view) selectPods(field string, covers func(namespaced) bool, by ...*podSelector) *selection {
	return v.work.once(by[0], func() *selection { return v.selectKinds(field, covers, by) })
}

func (v view) selectKinds(field string, covers func(namespaced) bool, by []*podSelector) *selection {
	v.work.spend(podWork*len(v.kinds), field)
	selected := &selection{field: field}
	for _, e := range v.kinds {
		if e != nil && covers(e.Value()) && v.selects(field, e, by) {
			if selected.kinds == nil {
				selected.kinds = make([]bool, len(v.kinds))
			}
			selected.kinds[e.index] = true
		}
	}
	if selected.kinds == nil {
		return nil
	}
	for _, b := range by {
		if b.own != nil {
			selected.narrow(b)
		}
	}
	return selected
}

// selects reports whether all of some selectors select the labels of a kind. Large labels take
// longer, as they're read from memory that no cache has.
func (v view) selects(field string, e *kindEntry, by []*podSelector) bool {
	for _, b := range by {
		v.work.spend(b.work+len(e.Value().labels)/labelBytes, field)
		if !b.shared.Matches(e.labels) {
			return false
		}
	}
	return true
}

// narrow adds a selector over Pods' own labels.
func (s *selection) narrow(by *podSelector) {
	requirements, _ := by.own.Requirements()
	if s.own == nil {
		s.own = labels.NewSelector()
	}
	s.own, s.work = s.own.Add(requirements...), s.work+by.work
	for _, r := range requirements {
		if o := r.Operator(); o == operator.In || o == operator.Equals || o == operator.DoubleEquals {
			s.values = hashes(r.ValuesUnsorted())
		}
	}
}

// seed of hashes. What two values have in common by it costs time, and changes no answer.
var seed = maphash.MakeSeed()

func hashes(values []string) []uint64 {
	all := make([]uint64, len(values))
	for i, value := range values {
		all[i] = maphash.String(seed, value)
	}
	return all
}

func (on *podsOn) findOwned() {
	for _, p := range on.Pods {
		on.owned = append(on.owned, hashes(p.own.Value().values())...)
	}
	slices.Sort(on.owned)
	on.owned = slices.Clip(slices.Compact(on.owned))
}

// may reports whether some Pods of a node may be selected.
func (s *selection) may(n *Node) bool {
	return s.values == nil || slices.ContainsFunc(s.values, func(value uint64) bool {
		_, has := slices.BinarySearch(n.owned, value)
		return has
	})
}

// eachOf visits the Pods that are selected, counted by kind, on all nodes.
func (v view) eachOf(selected *selection, visit func(node int, k *kindCount)) {
	if selected == nil {
		return
	}
	for i, n := range v.Nodes {
		v.work.spend(podWork+len(selected.values)*podWork, selected.field)
		if !selected.may(n) {
			continue
		}
		v.work.spend(len(n.kinds), selected.field)
		for k := range n.kinds {
			some := &n.kinds[k]
			if selected.kinds[some.index] && selected.own != nil {
				v.work.spend(len(n.Pods)*(podWork+selected.work), selected.field)
				narrowed := *some
				narrowed.count = n.count(some, selected.own)
				some = &narrowed
			}
			if selected.kinds[some.index] && some.count > 0 {
				visit(i, some)
			}
		}
	}
}

// count counts the Pods of a kind that a selector over their own labels selects.
func (n *Node) count(k *kindCount, own labels.Selector) int32 {
	count := int32(0)
	for _, p := range n.Pods {
		if p.kind == k.of.kind && p.Lasts == k.lasts && p.Leaving == k.leaving && own.Matches(p.own.Value()) {
			count++
		}
	}
	return count
}
