package scheduling

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

var otherZone = Reason{"VolumeZone", "node(s) had no available volume zone", volumesField}

// reach is from where a volume can be used.
type reach struct {
	// affinity is nil if that is everywhere.
	affinity *nodeaffinity.LazyErrorNodeSelector
	// zones are the volume's labels of zones and regions.
	zones map[string][]string
}

// reachOf a volume says why it can't be used on a node. Of nodes that have the same of the labels
// by which that is found out, one is asked.
func (s *volumesState) reachOf(pv *corev1.PersistentVolume) func(node int) *Reason {
	r, reads, work := reach{}, nodeRead{}, reachWork(pv)
	s.in.work.spend(volumeWork+work, volumesField)
	if a := pv.Spec.NodeAffinity; a != nil && a.Required != nil {
		r.affinity = nodeaffinity.NewLazyErrorNodeSelector(a.Required)
		for i := range a.Required.NodeSelectorTerms {
			for _, e := range a.Required.NodeSelectorTerms[i].MatchExpressions {
				reads.labels = append(reads.labels, e.Key)
			}
		}
	}
	for key := range zoneLabels {
		if values, has := pv.Labels[key]; has {
			if r.zones == nil {
				r.zones = map[string][]string{}
			}
			r.zones[key] = strings.Split(values, "__")
		}
	}
	if len(r.zones) > 0 {
		reads.labels = slices.AppendSeq(reads.labels, maps.Keys(zoneLabels))
	}
	reads.complete()
	ask := func(node int) *Reason {
		s.in.work.spend(max(volumeWork, work/reachComparisons), volumesField)
		return r.refuses(s.in.Nodes[node].Object)
	}
	if reads.names {
		return ask
	}
	var once func(node int) *Reason
	return func(node int) *Reason {
		if once == nil {
			once = onceIn(s.in.topologies.alike(&reads, s.in.work, volumesField), ask)
		}
		return once(node)
	}
}

// reachWork is what it takes to read by which nodes a volume can be used.
func reachWork(pv *corev1.PersistentVolume) (work int) {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return 0
	}
	for i := range pv.Spec.NodeAffinity.Required.NodeSelectorTerms {
		t := &pv.Spec.NodeAffinity.Required.NodeSelectorTerms[i]
		work += reachTerm + reachRequirement*(len(t.MatchExpressions)+len(t.MatchFields))
		for k := range t.MatchExpressions {
			work += reachValue * len(t.MatchExpressions[k].Values)
		}
	}
	return work
}

// refuses says why a volume can't be used on a node. Only the node's labels count for that.
func (r *reach) refuses(node *corev1.Node) *Reason {
	if r.affinity != nil {
		if is, err := r.affinity.Match(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: node.Labels}}); !is || err != nil {
			return &volumeElsewhere
		}
	}
	if len(r.zones) > 0 && !r.inZone(node) {
		return &otherZone
	}
	return nil
}

// zoneLabels of volumes, with the label of nodes that may stand for it.
var zoneLabels = map[string]string{
	corev1.LabelTopologyZone: corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone: corev1.LabelTopologyZone,
	corev1.LabelTopologyRegion: corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
}

// inZone compares a volume's zone with a node's, where the node has any.
func (r *reach) inZone(node *corev1.Node) bool {
	zoned := false
	for key := range zoneLabels {
		_, has := node.Labels[key]
		zoned = zoned || has
	}
	if !zoned {
		return true
	}
	for key, values := range r.zones {
		value, has := node.Labels[key]
		if !has {
			value, has = node.Labels[zoneLabels[key]]
		}
		if !has || !slices.Contains(values, value) {
			return false
		}
	}
	return true
}
