package scheduling

import (
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

const spreadField = "spec.template.spec.topologySpreadConstraints"

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
	selector                   labels.Selector
	honorAffinity, honorTaints bool
	// self: the Job's own Pods are counted.
	self bool
}

func constraintsOf(pod *corev1.Pod) []constraint {
	var constraints []constraint
	for i := range pod.Spec.TopologySpreadConstraints {
		c := &pod.Spec.TopologySpreadConstraints[i]
		if c.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		selector := selectorOf(c.LabelSelector)
		if c.LabelSelector != nil {
			selector = withLabels(selector, pod.Labels, c.MatchLabelKeys, true)
		}
		constraints = append(constraints, constraint{
			key:           c.TopologyKey,
			maxSkew:       int64(c.MaxSkew),
			minDomains:    int64(ptr.Deref(c.MinDomains, 1)),
			selector:      selector,
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

// spreadCounts are by the value of the constraint's label.
type spreadCounts struct {
	// hindering Pods are counted in the domain that a Pod would be in.
	hindering map[string]int64
	// helping Pods are counted in the domain with the fewest, by which the others are judged.
	helping map[string]int64
	least   int64
}

func podTopologySpread(j *Job, v view) state {
	if len(j.spread) == 0 {
		return nil
	}
	s := &spreadState{job: j, view: v, counts: make([]spreadCounts, len(j.spread))}
	for i := range s.counts {
		s.counts[i] = spreadCounts{hindering: map[string]int64{}, helping: map[string]int64{}}
	}
	for _, n := range v.Nodes {
		s.read(n)
	}
	for i := range s.counts {
		s.counts[i].settle(&j.spread[i])
	}
	return s
}

// read counts a node's Pods. Nodes without all of the labels aren't in any domain.
func (s *spreadState) read(n *Node) {
	if !s.labelled(n) {
		return
	}
	for i := range s.job.spread {
		c, counts := &s.job.spread[i], &s.counts[i]
		if !s.includes(c, n) {
			continue
		}
		value := n.Object.Labels[c.key]
		counts.hindering[value] += 0
		counts.helping[value] += 0
		if c.selector.Empty() {
			continue // as the scheduler does: only the Job's own Pods are counted
		}
		for _, p := range n.Pods {
			if p.Leaving || p.Namespace != s.job.namespace || !c.selector.Matches(p.Labels) {
				continue
			}
			if s.view.hinders(p) {
				counts.hindering[value]++
			}
			if s.view.helps(p) {
				counts.helping[value]++
			}
		}
	}
}

func (s *spreadState) clone() state {
	c := *s
	c.counts = slices.Clone(s.counts)
	for i := range c.counts {
		c.counts[i].hindering, c.counts[i].helping = maps.Clone(s.counts[i].hindering), maps.Clone(s.counts[i].helping)
	}
	return &c
}

func (s *spreadState) labelled(n *Node) bool {
	for i := range s.job.spread {
		if _, has := n.Object.Labels[s.job.spread[i].key]; !has {
			return false
		}
	}
	return true
}

// includes reports whether a node counts, by the constraint's node inclusion policies.
func (s *spreadState) includes(c *constraint, n *Node) bool {
	return (!c.honorAffinity || s.job.selects(n)) && (!c.honorTaints || s.view.taint(n, s.job) == nil)
}

// settle finds the smallest count. It is zero while there are fewer domains than there should be.
func (c *spreadCounts) settle(of *constraint) {
	c.least = math.MaxInt32 // without a domain, nothing is too many
	for _, count := range c.helping {
		c.least = min(c.least, count)
	}
	if int64(len(c.helping)) < of.minDomains {
		c.least = 0
	}
}

func (s *spreadState) check(p *place) *Reason {
	for i := range s.job.spread {
		c, counts := &s.job.spread[i], &s.counts[i]
		value, has := p.node.Object.Labels[c.key]
		if !has {
			return &spreadUnnamed
		}
		count := counts.hindering[value]
		if c.self {
			count++
		}
		if count-counts.least > c.maxSkew {
			return &spreadUnmet
		}
	}
	return nil
}

func (s *spreadState) add(p *place) {
	for i := range s.job.spread {
		c, counts := &s.job.spread[i], &s.counts[i]
		// The next cycle of the scheduler counts anew, and an empty selector selects nothing then.
		if !c.self || c.selector.Empty() || !s.labelled(p.node) || !s.includes(c, p.node) {
			continue
		}
		value := p.node.Object.Labels[c.key]
		counts.hindering[value]++
		counts.helping[value]++
		counts.settle(c)
	}
}
