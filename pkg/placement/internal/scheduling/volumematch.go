package scheduling

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/storage/volume"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

func (s *volumesState) check(p *place) *Reason {
	if reason := s.unreachable(p); reason != nil {
		return reason
	}
	_, reason := s.next(p.node.Object)
	return reason
}

// next are the bindings of the next Pod on a node.
func (s *volumesState) next(node *corev1.Node) ([]binding, *Reason) {
	bindings, reason := s.bindings(node)
	if reason == nil {
		reason = s.match(bindings, node, s.used)
	}
	return bindings, reason
}

// unreachable says why a node can't use the volumes that all Pods of the Job use.
func (s *volumesState) unreachable(p *place) *Reason {
	if s.refused != nil {
		return s.refused
	}
	s.in.work.spend(volumeWork*len(s.made)+checkWork*len(s.bound), volumesField)
	for _, refuses := range s.bound {
		if reason := refuses(p.index); reason != nil {
			return reason
		}
	}
	if slices.ContainsFunc(s.made, func(c *corev1.PersistentVolumeClaim) bool { return !s.provisions(c, p.node.Object) }) {
		return &volumeElsewhere
	}
	return nil
}

// count allows as many Pods as find volumes on a node, if they take none from other nodes.
func (s *volumesState) count(p *place) *Reason {
	bindings, reason := s.bindings(p.node.Object)
	if reason != nil {
		return reason
	}
	used := map[string]*corev1.PersistentVolume{}
	for pods := int64(0); pods < p.slots; pods++ {
		reason := s.match(bindings, p.node.Object, used)
		if reason != nil && pods == 0 {
			return reason
		}
		if reason != nil {
			p.allow(pods, reason)
			break
		}
		before := len(used)
		for _, b := range bindings {
			if b.pv != nil {
				used[b.pv.Name] = b.pv
			}
		}
		if len(used) == before {
			break // volumes are made, for any number of Pods
		}
	}
	return nil
}

// binding of a claim on a node: to one of the candidates, or to a volume that would be made.
type binding struct {
	claim      *corev1.PersistentVolumeClaim
	candidates []*corev1.PersistentVolume
	pv         *corev1.PersistentVolume
	shared     bool
}

// bindings are those of all claims that would be bound with a Pod on a node, the smallest first.
// One that was to be made for another node isn't found.
func (s *volumesState) bindings(node *corev1.Node) ([]binding, *Reason) {
	s.in.work.spend(volumeWork*(len(s.shared)+len(s.own)), volumesField)
	bindings := make([]binding, 0, len(s.shared)+len(s.own))
	for _, claim := range s.shared {
		bindings = append(bindings, binding{claim: claim, shared: true})
	}
	for _, claim := range s.own {
		bindings = append(bindings, binding{claim: claim})
	}
	slices.SortStableFunc(bindings, func(a, b binding) int { return requestedStorage(a.claim).Cmp(*requestedStorage(b.claim)) })
	for i := range bindings {
		b := &bindings[i]
		chosen, is := b.claim.Annotations[volume.AnnSelectedNode]
		if is && chosen != node.Name {
			return nil, &noVolume
		}
		if !is {
			b.candidates = s.candidates().usable(b.claim, !b.shared, node)
		}
	}
	return bindings, nil
}

// match finds volumes for all bindings, but none that is used. Meanwhile, those that it found are
// used, too.
func (s *volumesState) match(bindings []binding, node *corev1.Node, used map[string]*corev1.PersistentVolume) (reason *Reason) {
	tried := 0
	for ; tried < len(bindings) && reason == nil; tried++ {
		b := &bindings[tried]
		s.choose(b, node, used)
		switch {
		case b.pv != nil:
			used[b.pv.Name] = b.pv
		case !s.provisions(b.claim, node):
			reason = &noVolume
		case s.spaceCounts && !s.hasSpace(b.claim, node):
			reason = &noSpace
		}
	}
	for _, b := range bindings[:tried] {
		if b.pv != nil {
			delete(used, b.pv.Name)
		}
	}
	return reason
}

func (s *volumesState) choose(b *binding, node *corev1.Node, used map[string]*corev1.PersistentVolume) {
	b.pv = nil
	capacities := s.Capacities[volume.GetPersistentVolumeClaimClass(b.claim)]
	read := unusual(capacity.ReadingOf(b.claim.Spec.Selector))
	for _, c := range capacities {
		read += unusual(capacity.ReadingOf(c.NodeTopology))
	}
	work := volumeWork*(1+len(b.candidates)+len(capacities)) + capacity.ReadWeight*read
	for _, pv := range b.candidates {
		work += reachWork(pv)
	}
	s.in.work.spend(work, volumesField)
	if pv, err := volume.FindMatchingVolume(b.claim, b.candidates, node, used, true, true); err == nil {
		b.pv = pv
	}
}

// maxModes is more than there are: Kubernetes knows four, of 16 letters at most.
const maxModes, maxMode = 8, 32

// AccessModes are those of a claim or a volume, each once. API servers let them be repeated any
// number of times, and all are read for each volume that may be bound to the claim on a node. Of
// one that is longer than any, the text isn't read.
func AccessModes(all []corev1.PersistentVolumeAccessMode) (modes []corev1.PersistentVolumeAccessMode) {
	for _, mode := range all {
		if len(mode) > maxMode {
			mode = "?"
		}
		if len(modes) < maxModes && !slices.Contains(modes, mode) {
			modes = append(modes, mode)
		}
	}
	return modes
}

// unusual is how much more is read of a selector than of those that people write, which volumeWork
// is for.
func unusual(reading int) int { return max(reading-8, 0) }

func requestedStorage(claim *corev1.PersistentVolumeClaim) *resource.Quantity {
	return claim.Spec.Resources.Requests.Storage()
}

// provisions reports whether a volume can be made for a node.
func (s *volumesState) provisions(claim *corev1.PersistentVolumeClaim, node *corev1.Node) bool {
	class := s.Classes[volume.GetPersistentVolumeClaimClass(claim)]
	if class.Provisioner == "" || class.Provisioner == "kubernetes.io/no-provisioner" {
		return false
	}
	return len(class.AllowedTopologies) == 0 || slices.ContainsFunc(class.AllowedTopologies, func(t corev1.TopologySelectorTerm) bool {
		for _, e := range t.MatchLabelExpressions {
			if value, has := node.Labels[e.Key]; !has || !slices.Contains(e.Values, value) {
				return false
			}
		}
		return true
	})
}

// add binds the claims. What is made for a shared claim can be used wherever its class allows it:
// on nodes, too, that the scheduler hadn't selected.
func (s *volumesState) add(p *place) bool {
	bindings, _ := s.next(p.node.Object)
	first := len(s.shared) > 0
	for _, b := range bindings {
		if b.pv != nil {
			s.used[b.pv.Name] = b.pv
		}
		switch {
		case b.shared && b.pv != nil:
			s.bound = append(s.bound, s.reachOf(s.Volumes.Volumes[b.pv.Name]))
		case b.shared:
			s.made = append(s.made, b.claim)
		}
	}
	s.shared = nil
	return first
}

// coupled reports that it matters which nodes come first: claims aren't bound yet.
func (*volumesState) coupled() bool { return true }

func (s *volumesState) clone() state {
	c := *s
	c.bound, c.made, c.used = slices.Clone(s.bound), slices.Clone(s.made), maps.Clone(s.used)
	return &c
}
