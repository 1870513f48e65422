package scheduling

import (
	"slices"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

const (
	affinityField     = capacity.AffinityField
	antiAffinityField = capacity.AntiAffinityField
	labelsField       = "spec.template.metadata.labels"
)

var (
	affinityUnmet      = Reason{"InterPodAffinity", "node(s) didn't match pod affinity rules", affinityField}
	antiAffinityUnmet  = Reason{"InterPodAffinity", "node(s) didn't match pod anti-affinity rules", antiAffinityField}
	othersAntiAffinity = Reason{
		"InterPodAffinity", "node(s) didn't satisfy existing pods anti-affinity rules", labelsField,
	}
)

// maxGuards bounds the kinds of a worker's Pods whose anti-affinity is judged.
const maxGuards = 2000

// othersAffinity is the part of the plugin InterPodAffinity that looks at a node alone: Pods that
// run may keep the Job's Pods away. It is nil if none does.
func othersAffinity(j *Job, v view) filter {
	if j.isBare || slices.Contains(j.unjudged, labelsField) {
		return nil
	}
	refused, known := domains{}, map[*kindEntry][]string{}
	for _, n := range v.guarded {
		for i := range n.guards {
			k := &n.guards[i]
			v.work.spend(podWork, labelsField)
			if !v.hinders(k.lasts) {
				continue
			}
			keys, asked := known[k.of]
			if !asked && len(known) < maxGuards {
				keys = v.refusing(k.of.antiAffinity, j)
				known[k.of] = keys
			}
			v.work.spend(capacity.TermWeight*len(keys), labelsField)
			for _, key := range keys {
				refused.add(n, key)
			}
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return func(p *place) *Reason {
		v.work.spend(capacity.TermWeight*len(refused), labelsField)
		if refused.have(p.node) {
			return &othersAntiAffinity
		}
		return nil
	}
}

// refusing are the topology keys of the terms that keep the Job away.
func (v view) refusing(terms []term, j *Job) []string {
	var keys []string
	for i := range terms {
		if v.matches(&terms[i], j, labelsField) == yes {
			keys = append(keys, terms[i].key)
		}
	}
	return keys
}

// domains are values of nodes' labels, by label.
type domains map[string]map[string]bool

func (d domains) add(n *Node, key string) {
	value, has := n.Object.Labels[key]
	if !has {
		return
	}
	if d[key] == nil {
		d[key] = map[string]bool{}
	}
	d[key][value] = true
}

func (d domains) have(n *Node) bool {
	for key, values := range d {
		if value, has := n.Object.Labels[key]; has && values[value] {
			return true
		}
	}
	return false
}

// affinityState knows for each term of the Job in which domains there are Pods that match.
type affinityState struct {
	wanted, avoided []termState
	// self: a Pod of the Job satisfies the Job's own affinity, or one of a mate does, and is there
	// with the first of the Job's. bySelf: the Job's own do. byMates: those of mates do.
	self, bySelf, byMates bool
	// bound: a Pod that the Job wants is there for sure.
	bound bool
	// freed: it isn't bound by that, because one of a mate's may be elsewhere.
	freed bool
}

// termState is where Pods match a term.
type termState struct {
	topology
	there []bool
	// self says whether the Job's own Pods match.
	self certainty
}

func interPodAffinity(j *Job, v view) state {
	if len(j.affinity)+len(j.antiAffinity) == 0 {
		return nil
	}
	s := &affinityState{wanted: termStates(j, v, j.affinity, affinityField), avoided: termStates(j, v, j.antiAffinity, antiAffinityField)}
	s.bySelf = len(s.wanted) > 0 && !slices.ContainsFunc(s.wanted, func(t termState) bool { return t.self == no })
	s.byMates = v.nearMates(j)
	s.self = s.bySelf || s.byMates
	s.readWanted(j.affinity, v)
	if s.bound && s.byMates {
		s.bound, s.freed = false, true
	}
	for i := range s.avoided {
		s.avoided[i].read(j.antiAffinity[i:i+1], v)
	}
	return s
}

func termStates(j *Job, v view, terms []term, field string) []termState {
	states := make([]termState, len(terms))
	for i := range terms {
		t := v.topologies.by(terms[i].key, v.work, field)
		states[i] = termState{t, make([]bool, t.size), v.matches(&terms[i], j, field)}
	}
	return states
}

// readWanted takes note of the Pods that match all terms of the Job's affinity, at least perhaps.
func (s *affinityState) readWanted(terms []term, v view) {
	if len(terms) == 0 {
		return
	}
	v.eachOf(v.selectBy(affinityField, perhaps, terms...), func(node int, k *kindCount) {
		if v.helps(k.lasts) {
			v.work.spend(checkWork*len(terms), affinityField)
			s.mark(node, !s.bound && v.hinders(k.lasts) && v.cover(terms, k.of.Value().namespace) == yes)
		}
	})
}

// mark says that a Pod that the Job wants is on a node, for sure or perhaps.
func (s *affinityState) mark(node int, sure bool) {
	for i := range s.wanted {
		if s.wanted[i].mark(node) && sure {
			s.bound = true
		}
	}
}

// read takes note of the Pods that match one term of the Job's anti-affinity.
func (s *termState) read(t []term, v view) {
	v.eachOf(v.selectBy(antiAffinityField, yes, t...), func(node int, k *kindCount) {
		if v.hinders(k.lasts) {
			s.mark(node)
		}
	})
}

func (s *termState) mark(node int) bool {
	domain := s.at[node]
	if domain == undomained {
		return false
	}
	s.there[domain] = true
	return true
}

func (s *affinityState) topologies() []topology {
	var topologies []topology
	for _, t := range slices.Concat(s.wanted, s.avoided) {
		topologies = append(topologies, t.topology)
	}
	return topologies
}

func (s *affinityState) clone() state {
	c := *s
	c.wanted, c.avoided = slices.Clone(s.wanted), slices.Clone(s.avoided)
	for _, terms := range [][]termState{c.wanted, c.avoided} {
		for i := range terms {
			terms[i].there = slices.Clone(terms[i].there)
		}
	}
	return &c
}

func (s *affinityState) check(p *place) *Reason {
	if !s.nearWanted(p.index) {
		return &affinityUnmet
	}
	for i := range s.avoided {
		t := &s.avoided[i]
		if domain := t.at[p.index]; domain != undomained && t.there[domain] {
			return &antiAffinityUnmet
		}
	}
	return nil
}

// nearWanted needs a Pod that the Job wants in each domain, unless there is none anywhere and the
// Job wants its own.
func (s *affinityState) nearWanted(node int) bool {
	near := true
	for i := range s.wanted {
		t := &s.wanted[i]
		domain := t.at[node]
		if domain == undomained {
			return false
		}
		near = near && t.there[domain]
	}
	return near || s.choosesFirst()
}

// labelled reports whether a node is in domains of all terms of the Job's affinity.
func (s *affinityState) labelled(node int) bool {
	return !slices.ContainsFunc(s.wanted, func(t termState) bool { return t.at[node] == undomained })
}

// choosesFirst: the next Pod decides in which domains all Pods of the Job will be.
func (s *affinityState) choosesFirst() bool { return s.self && !s.bound }

func (s *affinityState) add(p *place) bool {
	for i := range s.avoided {
		if s.avoided[i].self == yes {
			s.avoided[i].mark(p.index)
		}
	}
	if s.self {
		s.mark(p.index, true)
	}
	return false
}

// stays: the Pods are near each other there.
func (s *affinityState) stays() bool {
	return !slices.ContainsFunc(s.avoided, func(t termState) bool { return t.self == yes })
}

// bounds are known unless the first Pod decides where the others may be.
func (s *affinityState) bounds() ([]bound, bool) {
	if len(s.wanted) > 0 {
		return nil, false
	}
	bounds := make([]bound, len(s.avoided))
	for i := range s.avoided {
		t := &s.avoided[i]
		atLeast := slices.Repeat([]int64{unlimited}, t.size)
		for domain := range atLeast {
			switch {
			case t.there[domain]:
				atLeast[domain] = 0
			case t.self == yes:
				atLeast[domain] = 1
			}
		}
		bounds[i] = bound{topology: t.topology, atLeast: atLeast}
	}
	return bounds, true
}
