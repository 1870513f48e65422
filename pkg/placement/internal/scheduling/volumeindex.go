package scheduling

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/volume"

	"github.com/jobferry/jobferry/pkg/util/objectnames"
)

// volumeIndex has the volumes that can still be bound to a claim, so that few are looked at for one
// node: most are of one node, or one zone.
type volumeIndex struct {
	reserved map[types.NamespacedName][]*corev1.PersistentVolume // for one claim
	classes  map[string]*freeVolumes
}

// freeVolumes are those of one class that aren't reserved.
type freeVolumes struct {
	// byLabel has those that nodes can use with a label, by its value.
	byLabel map[string]map[string][]*corev1.PersistentVolume
	others  []*corev1.PersistentVolume
	// several: nodes with several values of a label can use one of them.
	several bool
}

// candidates are built once for all Jobs.
func (v *Volumes) candidates() *volumeIndex {
	v.once.Do(func() {
		v.index = &volumeIndex{map[types.NamespacedName][]*corev1.PersistentVolume{}, map[string]*freeVolumes{}}
		for _, pv := range v.Volumes {
			v.index.add(pv)
		}
	})
	return v.index
}

func (i *volumeIndex) add(pv *corev1.PersistentVolume) {
	if to := pv.Spec.ClaimRef; to != nil {
		key := types.NamespacedName{Namespace: to.Namespace, Name: to.Name}
		i.reserved[key] = append(i.reserved[key], pv)
		return
	}
	if pv.Status.Phase != corev1.VolumeAvailable || pv.DeletionTimestamp != nil {
		return
	}
	class := volume.GetPersistentVolumeClass(pv)
	if i.classes[class] == nil {
		i.classes[class] = &freeVolumes{byLabel: map[string]map[string][]*corev1.PersistentVolume{}}
	}
	i.classes[class].add(pv)
}

func (f *freeVolumes) add(pv *corev1.PersistentVolume) {
	key, values, all := labelOf(pv)
	if isNew := f.byLabel[key] == nil; len(values) == 0 || isNew && len(f.byLabel) == maxVolumeLabels {
		f.others = append(f.others, pv)
		return
	}
	if all { // nodes needn't be compared with it
		anywhere := *pv
		anywhere.Spec.NodeAffinity = nil
		pv = &anywhere
	}
	f.several = f.several || len(values) > 1
	if f.byLabel[key] == nil {
		f.byLabel[key] = map[string][]*corev1.PersistentVolume{}
	}
	for _, value := range values {
		f.byLabel[key][value] = append(f.byLabel[key][value], pv)
	}
}

// maxLabelValues is for how many values of a label a volume is in the index, and maxVolumeLabels
// for how many labels volumes are.
const maxLabelValues, maxVolumeLabels = 8, 16

// labelOf returns values of which a node must have one to use a volume; all: that is all it must
// have. None: it isn't so simple.
func labelOf(pv *corev1.PersistentVolume) (key string, values []string, all bool) {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil || len(pv.Spec.NodeAffinity.Required.NodeSelectorTerms) != 1 {
		return "", nil, false
	}
	term := &pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0]
	for _, e := range term.MatchExpressions {
		if e.Operator == corev1.NodeSelectorOpIn && len(e.Values) <= maxLabelValues {
			simple := len(term.MatchExpressions) == 1 && len(term.MatchFields) == 0
			return e.Key, e.Values, simple && objectnames.AreLabelValues(e.Values)
		}
	}
	return "", nil, false
}

// of are those of a claim's class; nil: there are none.
func (i *volumeIndex) of(claim *corev1.PersistentVolumeClaim) *freeVolumes {
	return i.classes[volume.GetPersistentVolumeClaimClass(claim)]
}

// local reports whether no volume can be used on two nodes.
func (f *freeVolumes) local(t *topologies, work *budget) bool {
	if f == nil {
		return true
	}
	for key := range f.byLabel {
		work.spend(len(t.nodes), volumesField) // to see whether they're apart
		if !t.by(key, work, volumesField).apart() {
			return false
		}
	}
	return len(f.others) == 0 && !f.several
}

// usable are the volumes that may be bound to a claim on a node. Own: each Pod has such a claim,
// and no volume is reserved for it.
func (i *volumeIndex) usable(claim *corev1.PersistentVolumeClaim, own bool, node *corev1.Node) []*corev1.PersistentVolume {
	var found []*corev1.PersistentVolume
	add := func(more []*corev1.PersistentVolume) {
		if len(found) == 0 {
			found = more[:len(more):len(more)]
		} else {
			found = append(found, more...)
		}
	}
	if f := i.of(claim); f != nil {
		add(f.others)
		for key, byValue := range f.byLabel {
			if value, has := node.Labels[key]; has {
				add(byValue[value])
			}
		}
	}
	if !own {
		add(i.reserved[types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}])
	}
	return found
}
