package scheduling

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	operator "k8s.io/apimachinery/pkg/selection"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

const spreadField = capacity.SpreadField

var (
	spreadUnmet   = Reason{"PodTopologySpread", "node(s) didn't match pod topology spread constraints", spreadField}
	spreadUnnamed = Reason{
		"PodTopologySpread", "node(s) didn't match pod topology spread constraints (missing required label)", spreadField,
	}
)

// constraint of topology spread that must be satisfied.
type constraint struct {
	key                        string
	maxSkew, minDomains        int64
	selector                   podSelector
	honorAffinity, honorTaints bool
	// self: the Job's own Pods are counted.
	self bool
}

// counted: each Pod of the Job counts for the next one. The scheduler counts anew for each, and an
// empty selector selects nothing then.
func (c *constraint) counted() bool { return c.self && !c.selector.Empty() }

func constraintsOf(pod *corev1.Pod) []constraint {
	var constraints []constraint
	for _, c := range capacity.JudgedSpread(&pod.Spec) {
		selector := selectorOf(c.LabelSelector)
		if c.LabelSelector != nil {
			selector = withLabels(selector, labels.Set(pod.Labels), c.MatchLabelKeys, operator.In)
		}
		constraints = append(constraints, constraint{
			key:           c.TopologyKey,
			maxSkew:       int64(c.MaxSkew),
			minDomains:    int64(ptr.Deref(c.MinDomains, 1)),
			selector:      podSelectorOf(selector),
			honorAffinity: ptr.Deref(c.NodeAffinityPolicy, corev1.NodeInclusionPolicyHonor) == corev1.NodeInclusionPolicyHonor,
			honorTaints:   ptr.Deref(c.NodeTaintsPolicy, corev1.NodeInclusionPolicyIgnore) == corev1.NodeInclusionPolicyHonor,
			self:          selector.Matches(labels.Set(pod.Labels)),
		})
	}
	return constraints
}

// spreadState counts, for each constraint, the Pods that it selects by domain.
type spreadState struct {
	job    *Job
	view   view
	counts []spreadCounts
}

// spreadCounts are by domain of the constraint's label.
type spreadCounts struct {
	topology
	// hindering Pods are counted in the domain that a Pod would be in.
	hindering []int64
	// helping Pods are counted in the domain with the fewest, by which the others are judged. It is
	// notIncluded for a domain of which no node counts.
	helping []int64
	// included is the number of the other domains.
	included int64
	// least is the smallest count, which so many domains have.
	least, have int64
}

// notIncluded is more than any number of Pods: without a domain, nothing is too many.
const notIncluded = math.MaxInt32

func podTopologySpread(j *Job, v view) state {
	if len(j.spread) == 0 {
		return nil
	}
	s := &spreadState{job: j, view: v, counts: make([]spreadCounts, len(j.spread))}
	for i := range j.spread {
		t := v.topologies.by(j.spread[i].key, v.work, spreadField)
		s.counts[i] = spreadCounts{topology: t, hindering: make([]int64, t.size), helping: slices.Repeat([]int64{notIncluded}, t.size)}
	}
	for i := range s.counts {
		s.read(&s.counts[i], &j.spread[i])
		s.counts[i].settle(&j.spread[i])
	}
	return s
}

// read counts the Pods of all nodes that count.
func (s *spreadState) read(counts *spreadCounts, c *constraint) {
	counting := s.counting(c)
	s.view.work.spend(len(s.view.Nodes)*len(s.counts)/domainsPerWork, spreadField)
	for i := range s.view.Nodes {
		if domain := counts.at[i]; counting(i) && counts.helping[domain] == notIncluded {
			counts.helping[domain] = 0
			counts.included++
		}
	}
	if s.view.moment == Ever && s.countsMates(c) {
		for domain := range counts.helping { // Pods of mates are where that helps
			counts.helping[domain] = notIncluded
		}
	}
	if c.selector.Empty() {
		return // as the scheduler does: only the Job's own Pods are counted
	}
	selected := s.view.selectPods(spreadField, func(k namespaced) bool { return k.namespace == s.job.namespace }, &c.selector)
	s.view.eachOf(selected, func(node int, k *kindCount) {
		if k.leaving || !counting(node) {
			return
		}
		domain := counts.at[node]
		if s.view.hinders(k.lasts) {
			counts.hindering[domain] += int64(k.count)
		}
		if s.view.helps(k.lasts) {
			counts.helping[domain] += int64(k.count)
		}
	})
}

// countsMates reports whether a constraint selects Pods of mates.
func (s *spreadState) countsMates(c *constraint) bool {
	return !c.selector.Empty() && slices.ContainsFunc(s.job.mates, func(m *Job) bool {
		s.view.work.spend(c.selector.work, spreadField)
		return m.namespace == s.job.namespace && c.selector.Matches(m.labels)
	})
}

func (s *spreadState) topologies() []topology {
	topologies := make([]topology, len(s.counts))
	for i := range s.counts {
		topologies[i] = s.counts[i].topology
	}
	return topologies
}

func (s *spreadState) clone() state {
	c := *s
	c.counts = slices.Clone(s.counts)
	for i := range c.counts {
		c.counts[i].hindering, c.counts[i].helping = slices.Clone(s.counts[i].hindering), slices.Clone(s.counts[i].helping)
	}
	return &c
}

func (s *spreadState) labelled(node int) bool {
	for i := range s.counts {
		if s.counts[i].at[node] == undomained {
			return false
		}
	}
	return true
}

// counting says of nodes whether they count, by the constraint's node inclusion policies. Nodes
// without all of the labels aren't in any domain.
func (s *spreadState) counting(c *constraint) func(node int) bool {
	if (!c.honorAffinity || !s.job.shape.Selective()) && !c.honorTaints {
		return s.labelled
	}
	included := onceOf(s.job, s.view, func(node int) bool {
		n := s.view.Nodes[node].Object
		s.view.work.spend(s.job.nodeWork.On(n), s.job.nodeWork.Field)
		return (!c.honorAffinity || s.job.shape.Selects(n)) && (!c.honorTaints || !s.job.shape.Repelled(n, s.view.moment == Ever))
	})
	return func(node int) bool { return s.labelled(node) && included(node) }
}

// settle finds the smallest count. It is zero while there are fewer domains than there should be.
func (c *spreadCounts) settle(of *constraint) {
	c.least, c.have = notIncluded, 0
	for _, count := range c.helping {
		if count < c.least {
			c.least, c.have = count, 0
		}
		if count == c.least {
			c.have++
		}
	}
	if c.included < of.minDomains {
		c.least = 0
	}
}

func (s *spreadState) check(p *place) *Reason {
	for i := range s.counts {
		c, counts := &s.job.spread[i], &s.counts[i]
		domain := counts.at[p.index]
		if domain == undomained {
			return &spreadUnnamed
		}
		count := counts.hindering[domain]
		if c.self {
			count++
		}
		if count-counts.least > c.maxSkew {
			return &spreadUnmet
		}
	}
	return nil
}

// add is for a place that check lets pass. It has all the labels, the Job's node affinity selects
// it, and its taints are tolerated: it counts for every constraint.
func (s *spreadState) add(p *place) bool {
	more := false
	for i := range s.counts {
		c, counts := &s.job.spread[i], &s.counts[i]
		if !c.counted() {
			continue
		}
		domain := counts.at[p.index]
		counts.hindering[domain]++
		counts.helping[domain]++
		if counts.helping[domain] != counts.least+1 {
			continue
		}
		if counts.have--; counts.have <= 0 { // it was the last one with the fewest
			before := counts.least
			s.view.work.spend(len(counts.helping)/domainsPerWork, spreadField)
			counts.settle(c)
			more = more || counts.least > before
		}
	}
	return more
}

func (*spreadState) stays() bool { return false }

func (s *spreadState) bounds() ([]bound, bool) {
	bounds := make([]bound, len(s.counts))
	for i := range s.counts {
		c, counts := &s.job.spread[i], &s.counts[i]
		if c.maxSkew < 1 {
			return nil, false // the API server refuses it
		}
		b := bound{topology: counts.topology, atLeast: make([]int64, counts.size)}
		if c.counted() {
			b.rising, b.of = counts, c
		}
		for domain := range b.atLeast {
			b.atLeast[domain] = counts.room(c, domain)
		}
		bounds[i] = b
	}
	return bounds, true
}

// room is how many Pods a domain takes while no other has more.
func (c *spreadCounts) room(of *constraint, domain int) int64 {
	room := of.maxSkew + c.least - c.hindering[domain]
	switch {
	case of.counted():
		return max(room, 0)
	case room > 0 || room == 0 && !of.self:
		return unlimited
	default:
		return 0
	}
}
