package scheduling

import (
	"slices"
	"unique"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

// kind is what other Pods notice of a Pod, but for its own labels and what it takes of its node.
// Most Pods of a node, and of a worker, share theirs, so that it's kept, and looked at, once.
type kind struct{ unique.Handle[namespaced] }

// namespaced labels, and whom the Pod keeps away.
type namespaced struct {
	namespace string
	labels    labelSet
	// antiAffinity are the required terms, in protobuf.
	antiAffinity string
}

// ownKeys are of labels in which Pods differ that are alike otherwise: they name one Job, or one
// Pod.
var ownKeys = sets.New(
	batchv1.JobNameLabel, "job-name", batchv1.ControllerUidLabel, "controller-uid",
	batchv1.JobCompletionIndexAnnotation, appsv1.PodIndexLabel, appsv1.StatefulSetPodNameLabel,
)

// kindOf returns the Pod's own labels, too.
func kindOf(pod *corev1.Pod) (kind, unique.Handle[labelSet]) {
	shared, own := map[string]string{}, map[string]string{}
	for key, value := range pod.Labels {
		if ownKeys.Has(key) {
			own[key] = value
		} else {
			shared[key] = value
		}
	}
	n := namespaced{namespace: pod.Namespace, labels: labelSetOf(shared)}
	if required := capacity.RequiredAntiAffinity(&pod.Spec); len(required) > 0 {
		packed, err := (&corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}).Marshal()
		if err == nil { // it never fails
			n.antiAffinity = string(packed)
		}
	}
	return kind{unique.Make(n)}, unique.Make(labelSetOf(own))
}

// terms are those of anti-affinity. Own labels that matchLabelKeys name needn't be known: the API
// server has put their values into the selectors.
func (n namespaced) terms() []term {
	var unpacked corev1.PodAntiAffinity
	if n.antiAffinity == "" || unpacked.Unmarshal([]byte(n.antiAffinity)) != nil ||
		capacity.WeighTerms(unpacked.RequiredDuringSchedulingIgnoredDuringExecution) > maxGuardWeight {
		return nil
	}
	return termsOf(n.namespace, n.labels, unpacked.RequiredDuringSchedulingIgnoredDuringExecution)
}

// maxGuardWeight bounds what the anti-affinity of one kind of Pods has that is judged: about 50
// terms, or 700 values.
const maxGuardWeight = 800

// kindTable has the kinds of a worker's Pods. They have indexes, as small as can be: what is known
// of kinds is looked up in slices.
type kindTable struct {
	known map[kind]*kindEntry
	// entries are by their indexes; nil where an index is unused.
	entries []*kindEntry
	unused  []int32
	// listed is a copy of entries; nil after a change.
	listed []*kindEntry
	// selecting is how many kinds keep others away by the labels of their namespaces.
	selecting int
	// unjudged is how many kinds have more anti-affinity than is judged.
	unjudged int
}

// kindEntry is a kind that some Pods have. All but their number is immutable.
type kindEntry struct {
	kind
	index int32
	// labels are those of the kind.
	labels labels.Labels
	// antiAffinity says which Pods these keep away, and is mostly empty.
	antiAffinity []term
	pods         int
}

// selecting is one if some term reads the labels of namespaces, otherwise zero.
func (e *kindEntry) selecting() int {
	if slices.ContainsFunc(e.antiAffinity, func(t term) bool { return readsLabels(t.inNamespaces) }) {
		return 1
	}
	return 0
}

// unjudged is one if whom the Pods keep away isn't judged, otherwise zero.
func (e *kindEntry) unjudged() int {
	if e.Value().antiAffinity != "" && len(e.antiAffinity) == 0 {
		return 1
	}
	return 0
}

func newKindTable() *kindTable { return &kindTable{known: map[kind]*kindEntry{}} }

func (t *kindTable) add(k kind) {
	e := t.known[k]
	if e == nil {
		e = &kindEntry{kind: k, index: t.next(), labels: k.Value().labels, antiAffinity: k.Value().terms()}
		t.known[k], t.entries[e.index], t.listed = e, e, nil
		t.selecting += e.selecting()
		t.unjudged += e.unjudged()
	}
	e.pods++
}

// next is an index that is unused.
func (t *kindTable) next() int32 {
	if last := len(t.unused) - 1; last >= 0 {
		index := t.unused[last]
		t.unused = t.unused[:last]
		return index
	}
	t.entries = append(t.entries, nil)
	return int32(len(t.entries) - 1) //nolint:gosec // not more than Pods
}

func (t *kindTable) remove(k kind) {
	e := t.known[k]
	if e.pods--; e.pods == 0 {
		delete(t.known, k)
		t.selecting -= e.selecting()
		t.unjudged -= e.unjudged()
		t.entries[e.index], t.listed = nil, nil
		t.unused = append(t.unused, e.index)
	}
}

// list is not changed any more.
func (t *kindTable) list() []*kindEntry {
	if t.listed == nil {
		t.listed = slices.Clone(t.entries)
	}
	return t.listed
}

// kindCount counts Pods on a node that are alike: lasts and leaving are those of Pod.
type kindCount struct {
	of *kindEntry
	// index is that of the kind.
	index          int32
	count          int32
	lasts, leaving bool
}

// look counts the Pods of a node.
func (t *kindTable) look(pods []*Pod) *podsOn { return podsOf(pods, t.known) }

// counted is what Pods have in common that are counted together.
type counted struct {
	kind
	lasts, leaving bool
}

// podsOf counts Pods of known kinds.
func podsOf(pods []*Pod, known map[kind]*kindEntry) *podsOn {
	on := &podsOn{Pods: pods}
	at := make(map[counted]int, len(pods))
	for _, p := range pods {
		key := counted{p.kind, p.Lasts, p.Leaving}
		i, has := at[key]
		if !has {
			i = len(on.kinds)
			at[key] = i
			e := known[p.kind]
			on.kinds = append(on.kinds, kindCount{of: e, index: e.index, lasts: p.Lasts, leaving: p.Leaving})
		}
		on.kinds[i].count++
		if len(p.claims) > 0 {
			on.claiming = append(on.claiming, p)
		}
	}
	on.findGuards()
	on.findOwned()
	return on
}

// but are the Pods without some. What is owned isn't read again: it only says where Pods may be.
func (on *podsOn) but(gone sets.Set[*Pod]) *podsOn {
	rest := &podsOn{Pods: make([]*Pod, 0, len(on.Pods)), kinds: make([]kindCount, 0, len(on.kinds)), owned: on.owned}
	less := map[counted]int32{}
	for _, p := range on.Pods {
		if gone.Has(p) {
			less[counted{p.kind, p.Lasts, p.Leaving}]++
			continue
		}
		rest.Pods = append(rest.Pods, p)
		if len(p.claims) > 0 {
			rest.claiming = append(rest.claiming, p)
		}
	}
	for _, k := range on.kinds {
		if k.count -= less[counted{k.of.kind, k.lasts, k.leaving}]; k.count > 0 {
			rest.kinds = append(rest.kinds, k)
		}
	}
	rest.findGuards()
	return rest
}

func (on *podsOn) findGuards() {
	for _, k := range on.kinds {
		if len(k.of.antiAffinity) > 0 {
			on.guards = append(on.guards, k)
		}
	}
}
