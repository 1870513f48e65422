package scheduling

import (
	"unique"

	corev1 "k8s.io/api/core/v1"
)

// kind is what other Pods notice of a Pod, but for what it takes of its node. Most Pods of a node,
// and of a worker, share theirs, so that it's kept, and looked at, once.
type kind struct{ unique.Handle[namespaced] }

// namespaced labels, and whom the Pod keeps away.
type namespaced struct {
	namespace string
	labels    labelSet
	// antiAffinity are the required terms, in protobuf.
	antiAffinity string
}

func kindOf(pod *corev1.Pod) kind {
	n := namespaced{namespace: pod.Namespace, labels: labelSetOf(pod.Labels)}
	if required := requiredAntiAffinity(&pod.Spec); len(required) > 0 {
		packed, err := (&corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}).Marshal()
		if err == nil { // it never fails
			n.antiAffinity = string(packed)
		}
	}
	return kind{unique.Make(n)}
}

func (n namespaced) terms() []term {
	var unpacked corev1.PodAntiAffinity
	if n.antiAffinity == "" || unpacked.Unmarshal([]byte(n.antiAffinity)) != nil {
		return nil
	}
	return termsOf(n.namespace, n.labels, unpacked.RequiredDuringSchedulingIgnoredDuringExecution)
}

// kindTable has the kinds of a worker's Pods. They have indexes, as small as can be: what is known of
// kinds is looked up in slices.
type kindTable struct {
	known map[kind]*kindEntry
	// unused indexes, below size.
	unused []int32
	size   int32
}

// kindEntry is a kind that some Pods have. All but their number is immutable.
type kindEntry struct {
	kind
	index int32
	// antiAffinity says which Pods these keep away, and is mostly empty.
	antiAffinity []term
	pods         int
}

func newKindTable() *kindTable { return &kindTable{known: map[kind]*kindEntry{}} }

func (t *kindTable) add(k kind) {
	e := t.known[k]
	if e == nil {
		e = &kindEntry{kind: k, index: t.next(), antiAffinity: k.Value().terms()}
		t.known[k] = e
	}
	e.pods++
}

func (t *kindTable) next() int32 {
	if last := len(t.unused) - 1; last >= 0 {
		index := t.unused[last]
		t.unused = t.unused[:last]
		return index
	}
	t.size++
	return t.size - 1
}

func (t *kindTable) remove(k kind) {
	e := t.known[k]
	if e.pods--; e.pods == 0 {
		delete(t.known, k)
		t.unused = append(t.unused, e.index)
	}
}

// kindCount counts Pods on a node that are alike: lasts and leaving are those of Pod.
type kindCount struct {
	*kindEntry
	lasts, leaving bool
	count          int64
}

func (t *kindTable) countsOf(pods []*Pod) []kindCount {
	type alike struct {
		kind
		lasts, leaving bool
	}
	var counts []kindCount
	at := make(map[alike]int, len(pods))
	for _, p := range pods {
		key := alike{p.kind, p.Lasts, p.Leaving}
		i, known := at[key]
		if !known {
			i = len(counts)
			at[key] = i
			counts = append(counts, kindCount{kindEntry: t.known[p.kind], lasts: p.Lasts, leaving: p.Leaving})
		}
		counts[i].count++
	}
	return counts
}

// matcher asks once for each kind whether it is selected.
type matcher struct {
	matches func(*kindEntry) bool
	// known is by the index of the kind.
	known []selection
}

type selection uint8

const (
	unasked selection = iota
	selected
	passedOver
)

func (v view) newMatcher(matches func(*kindEntry) bool) matcher {
	return matcher{matches, make([]selection, v.kinds)}
}

func (m matcher) selects(e *kindEntry) bool {
	if m.known[e.index] == unasked {
		m.known[e.index] = passedOver
		if m.matches(e) {
			m.known[e.index] = selected
		}
	}
	return m.known[e.index] == selected
}
