package scheduling

import "maps"

const (
	affinityField     = "spec.template.spec.affinity.podAffinity"
	antiAffinityField = "spec.template.spec.affinity.podAntiAffinity"
)

var (
	affinityUnmet      = Reason{"InterPodAffinity", "node(s) didn't match pod affinity rules", affinityField}
	antiAffinityUnmet  = Reason{"InterPodAffinity", "node(s) didn't match pod anti-affinity rules", antiAffinityField}
	othersAntiAffinity = Reason{
		"InterPodAffinity", "node(s) didn't satisfy existing pods anti-affinity rules", "spec.template.metadata.labels",
	}
)

// domain is a label of nodes with its value.
type domain struct{ key, value string }

// affinityState counts Pods by the domains in which they matter.
type affinityState struct {
	job *Job
	// refused by the anti-affinity of Pods that run.
	refused map[domain]bool
	// avoided by the Job's own anti-affinity.
	avoided map[domain]bool
	// wanted by the Job's affinity.
	wanted map[domain]bool
	// avoids are the terms by which a Pod of the Job keeps others of it away.
	avoids []term
	// self: a Pod of the Job satisfies the Job's own affinity.
	self bool
	// bound: a Pod that the Job wants is there for sure.
	bound bool
}

func interPodAffinity(j *Job, v view) state {
	s := &affinityState{job: j, refused: map[domain]bool{}, avoided: map[domain]bool{}, wanted: map[domain]bool{}}
	own := v.Namespaces[j.namespace]
	s.read(v)
	for i := range j.antiAffinity {
		if t := &j.antiAffinity[i]; t.matches(j.namespace, own, j.labels) {
			s.avoids = append(s.avoids, *t)
		}
	}
	s.self = matchesAll(j.affinity, j.namespace, v, j)
	if len(s.refused)+len(j.antiAffinity)+len(j.affinity) == 0 {
		return nil
	}
	return s
}

// read takes note of the Pods that run: mostly nothing is to be read of them.
func (s *affinityState) read(v view) {
	terms := len(s.job.affinity)+len(s.job.antiAffinity) > 0
	for _, n := range v.Nodes {
		for _, p := range n.guarded {
			s.readGuarded(v, n, p)
		}
		if !terms {
			continue
		}
		for _, p := range n.Pods {
			s.readPod(v, n, p)
		}
	}
}

// readGuarded takes note of a Pod's anti-affinity.
func (s *affinityState) readGuarded(v view, n *Node, p *Pod) {
	if !v.hinders(p) {
		return
	}
	for i := range p.antiAffinity {
		if t := &p.antiAffinity[i]; t.matches(s.job.namespace, v.Namespaces[s.job.namespace], s.job.labels) {
			mark(s.refused, n, t)
		}
	}
}

// readPod takes note of a Pod that the Job wants or avoids.
func (s *affinityState) readPod(v view, n *Node, p *Pod) {
	if v.hinders(p) {
		for i := range s.job.antiAffinity {
			if t := &s.job.antiAffinity[i]; t.matches(p.Namespace, v.Namespaces[p.Namespace], p.Labels) {
				mark(s.avoided, n, t)
			}
		}
	}
	if len(s.job.affinity) > 0 && v.helps(p) && s.job.wants(p, v) {
		s.mark(n, v.hinders(p))
	}
}

// wants reports whether a Pod matches all terms of the Job's affinity.
func (j *Job) wants(p *Pod, v view) bool {
	for i := range j.affinity {
		if !j.affinity[i].matches(p.Namespace, v.Namespaces[p.Namespace], p.Labels) {
			return false
		}
	}
	return true
}

func matchesAll(terms []term, namespace string, v view, j *Job) bool {
	for i := range terms {
		if !terms[i].matches(namespace, v.Namespaces[namespace], j.labels) {
			return false
		}
	}
	return len(terms) > 0
}

// mark says that a Pod that the Job wants is on a node, for sure or perhaps.
func (s *affinityState) mark(n *Node, sure bool) {
	for i := range s.job.affinity {
		if mark(s.wanted, n, &s.job.affinity[i]) && sure {
			s.bound = true
		}
	}
}

func mark(domains map[domain]bool, n *Node, t *term) bool {
	value, has := n.Object.Labels[t.key]
	if has {
		domains[domain{t.key, value}] = true
	}
	return has
}

func (s *affinityState) clone() state {
	c := *s
	c.avoided, c.wanted = maps.Clone(s.avoided), maps.Clone(s.wanted)
	return &c
}

func (s *affinityState) check(p *place) *Reason {
	switch {
	case !s.nearWanted(p.node):
		return &affinityUnmet
	case s.nearAvoided(p.node):
		return &antiAffinityUnmet
	case s.isRefused(p.node):
		return &othersAntiAffinity
	default:
		return nil
	}
}

// nearWanted needs a Pod that the Job wants in each domain, unless there is none anywhere and the
// Job wants its own.
func (s *affinityState) nearWanted(n *Node) bool {
	near := true
	for i := range s.job.affinity {
		key := s.job.affinity[i].key
		value, has := n.Object.Labels[key]
		if !has {
			return false
		}
		near = near && s.wanted[domain{key, value}]
	}
	return near || s.choosesFirst()
}

// choosesFirst: the next Pod decides in which domains all Pods of the Job will be.
func (s *affinityState) choosesFirst() bool { return s.self && !s.bound }

func (s *affinityState) nearAvoided(n *Node) bool {
	if len(s.avoided) == 0 {
		return false
	}
	for i := range s.job.antiAffinity {
		key := s.job.antiAffinity[i].key
		if value, has := n.Object.Labels[key]; has && s.avoided[domain{key, value}] {
			return true
		}
	}
	return false
}

func (s *affinityState) isRefused(n *Node) bool {
	for d := range s.refused {
		if value, has := n.Object.Labels[d.key]; has && value == d.value {
			return true
		}
	}
	return false
}

func (s *affinityState) add(p *place) {
	for i := range s.avoids {
		mark(s.avoided, p.node, &s.avoids[i])
	}
	if s.self {
		s.mark(p.node, true)
	}
}
