package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/placement"
)

// roleKey is of the Pods of a group: which Job they belong to.
const roleKey = "role"

// randomGroup is the pair of a seed with one to three mates of its Job.
func randomGroup(seed uint64) *pair {
	p, s := random(seed), source{rand.New(rand.NewPCG(seed, 23))}
	if s.chance(50) {
		p = &pair{Nodes: p.Nodes, Pods: p.Pods, Job: s.job()}
	}
	if s.chance(70) {
		p.enlarge()
	}
	p.Job.Spec.Parallelism = ptr.To(int32(1 + s.IntN(4)))
	for i := range 1 + s.IntN(3) {
		m := s.job()
		if s.chance(40) {
			m.Spec.Template = *p.Job.Spec.Template.DeepCopy()
			m.Spec.Template.Spec.Containers[0].Resources = s.container("main").Resources
		}
		m.Name, m.UID = fmt.Sprintf("mate%d", i), "mate"
		m.Spec.Parallelism = ptr.To(int32(1 + s.IntN(3)))
		p.Mates = append(p.Mates, m)
	}
	for i, j := range p.jobs() {
		j.Spec.Template.Labels = map[string]string{roleKey: fmt.Sprint(i)}
		for key, value := range s.labels() {
			j.Spec.Template.Labels[key] = value
		}
		if s.chance(70) {
			j.Spec.Template.Spec.NodeSelector, j.Spec.Template.Spec.Affinity = nil, nil
			j.Spec.Template.Spec.TopologySpreadConstraints = nil
		}
		if s.chance(25) {
			s.tie(&j.Spec.Template.Spec, len(p.jobs()))
		}
	}
	p.Order = s.Uint64()
	return p
}

// enlarge the nodes: most groups are too large for those of the pairs.
func (p *pair) enlarge() {
	for _, n := range p.Nodes {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			amount := n.Status.Allocatable[name]
			amount.Mul(4)
			n.Status.Allocatable[name], n.Status.Capacity[name] = amount, amount
		}
	}
}

// tie a Job's Pods to one member of the group, or keep them apart.
func (s source) tie(spec *corev1.PodSpec, members int) {
	term := corev1.PodAffinityTerm{TopologyKey: s.of(corev1.LabelHostname, zoneKey, zoneKey), LabelSelector: s.appSelector()}
	term.LabelSelector.MatchLabels = map[string]string{roleKey: fmt.Sprint(s.IntN(members))}
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	switch s.IntN(3) {
	case 0:
		spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}
	case 1:
		spec.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}
	default:
		spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: term.TopologyKey, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: term.LabelSelector,
		}}
	}
}

// jobs are the Job and its mates.
func (p *pair) jobs() []*batchv1.Job { return append([]*batchv1.Job{p.Job}, p.Mates...) }

// orders in which the scheduler gets the Pods of all Jobs: each by its turn in a random order, and
// one Job's after the other's, from either end.
const orders = 3

// pods are those of all Jobs in an order. Their names begin with that of their Job.
func (p *pair) pods(order int) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, j := range p.jobs() {
		for i := range *j.Spec.Parallelism {
			pod := podOf(j)
			pod.Name = fmt.Sprintf("%s%d", pod.GenerateName, i)
			pods = append(pods, pod)
		}
	}
	switch order {
	case 0:
		if len(p.Mates) > 0 {
			r := rand.New(rand.NewPCG(p.Order, 0))
			r.Shuffle(len(pods), func(i, k int) { pods[i], pods[k] = pods[k], pods[i] })
		}
	case 1:
		slices.Reverse(pods)
	}
	return pods
}

// jobOf is the name of the Job that a Pod is of.
func jobOf(pod string) string { return pod[:strings.LastIndex(pod, "-")] }

// askGroup asks for each member, as if it were the one that is placed. The answer is the first's.
func (g *game) askGroup(s *placement.Snapshot) {
	g.sure, g.never = true, ""
	jobs := g.at.jobs()
	for i, j := range jobs {
		var mates []placement.Mate
		for k, m := range jobs {
			if k != i {
				mates = append(mates, placement.Mate{Job: m, Pods: int64(*m.Spec.Parallelism)})
			}
		}
		want := int64(*j.Spec.Parallelism)
		answer := placement.NewGroup(placement.NewJob(j), mates).Judge(s, want)
		if i == 0 {
			g.answer = answer
			if g.never = j.Name; answer.Mate != nil {
				g.never = answer.Mate.Name
			}
		}
		g.asymmetric = g.asymmetric || answer.Verdict != g.answer.Verdict
		g.sure = g.sure && answer.Verdict == g.answer.Verdict && !answer.Contended && answer.Now >= want
	}
}
