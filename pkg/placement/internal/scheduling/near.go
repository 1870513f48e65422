package scheduling

import (
	"slices"
)

// fitIdle counts the wanted Pods that fit in the idle worker. Perhaps they must be near Pods that
// end by themselves: then more may fit before all of these have ended.
func (j *Job) fitIdle(s *Snapshot, wanted int64, b *budget) int64 {
	pods := j.fill(view{s, Idle, b}, wanted).pods
	if kept := s.keepingNear(j, b); pods < wanted && kept != s {
		pods = max(pods, j.fill(view{kept, Idle, b}, wanted).pods)
	}
	return pods
}

// keepingNear is a Snapshot in which, on each node, one of the Pods that the Job must be near
// lasts: the one that leaves the Job the most room.
func (s *Snapshot) keepingNear(j *Job, b *budget) *Snapshot {
	v := view{s, Idle, b}
	if len(j.affinity) == 0 || v.nears(j, j) || v.nearMates(j) {
		return s
	}
	near := v.selectBy(affinityField, perhaps, j.affinity...)
	if near == nil {
		return s
	}
	kept := *s
	kept.Nodes, kept.guarded = slices.Clone(s.Nodes), nil
	for i, n := range s.Nodes {
		b.spend(len(n.Pods)*(podWork+near.work+j.shape.WorkOn(n.Object)), affinityField)
		if p := n.toKeep(near, j); p != nil {
			kept.Nodes[i] = n.keeping(p)
		}
	}
	kept.findGuards()
	return &kept
}

// nearMates reports whether mates satisfy the Job's affinity.
func (v view) nearMates(j *Job) bool {
	return slices.ContainsFunc(j.mates, func(m *Job) bool { return v.nears(j, m) })
}

// nears reports whether a Job has affinity, and all its terms select another's Pods, or its own, at
// least perhaps. That is found out once in a judgement, whatever views it takes.
func (v view) nears(j, other *Job) bool {
	return len(j.affinity) > 0 && v.work.nears(j, other, func() bool {
		return !slices.ContainsFunc(j.affinity, func(t term) bool { return v.matches(&t, other, affinityField) == no })
	})
}

// toKeep is nil if none of the node's Pods is selected, or one is that lasts anyway.
func (n *Node) toKeep(near *selection, j *Job) *Pod {
	var best *Pod
	most := int64(-1)
	for _, p := range n.selected(near) {
		switch slots := j.shape.RoomBeside(&n.Idle, &p.Requests); {
		case p.Leaving:
		case p.Lasts:
			return nil
		case slots > most:
			best, most = p, slots
		}
	}
	return best
}

func (n *Node) selected(s *selection) []*Pod {
	kinds := map[kind]bool{}
	for i := range n.kinds {
		if s.kinds[n.kinds[i].index] {
			kinds[n.kinds[i].of.kind] = true
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(n.Pods), func(p *Pod) bool {
		return !kinds[p.kind] || s.own != nil && !s.own.Matches(p.own.Value())
	})
}

// keeping is the node with one Pod that lasts.
func (n *Node) keeping(pod *Pod) *Node {
	lasting := *pod
	lasting.Lasts = true
	on := &podsOn{Pods: slices.Clone(n.Pods), kinds: slices.Clone(n.kinds), owned: n.owned, claiming: slices.Clone(n.claiming)}
	on.Pods[slices.Index(n.Pods, pod)] = &lasting
	if c := slices.Index(n.claiming, pod); c >= 0 {
		on.claiming[c] = &lasting
	}
	i := slices.IndexFunc(on.kinds, func(k kindCount) bool { return k.of.kind == pod.kind && !k.lasts && !k.leaving })
	on.kinds[i].count--
	one := on.kinds[i]
	one.lasts, one.count = true, 1
	on.kinds = append(on.kinds, one)
	on.findGuards()
	node := *n.Node
	node.Idle = node.Idle.Add(pod.Requests, -1)
	return &Node{&node, on}
}
