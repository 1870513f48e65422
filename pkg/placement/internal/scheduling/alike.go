package scheduling

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// nodeRead is what a Job's Pods read of nodes, besides what keeps Pods away from them and what is
// free there.
type nodeRead struct {
	// names: no two nodes are alike for the Job.
	names bool
	// labels by which nodes differ for the Job, in order, and as one text.
	labels []string
	key    string
}

func nodeReadBy(spec *corev1.PodSpec) nodeRead {
	read := nodeRead{names: spec.NodeName != ""}
	for key := range spec.NodeSelector {
		read.labels = append(read.labels, key)
	}
	if spec.OS != nil {
		read.labels = append(read.labels, corev1.LabelOSStable)
	}
	if a := spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		terms := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		for i := range terms {
			read.names = read.names || len(terms[i].MatchFields) > 0
			for k := range terms[i].MatchExpressions {
				read.labels = append(read.labels, terms[i].MatchExpressions[k].Key)
			}
		}
	}
	read.complete()
	return read
}

// complete puts the labels in order.
func (r *nodeRead) complete() {
	slices.Sort(r.labels)
	r.labels = slices.Compact(r.labels)
	r.key = "," + strings.Join(r.labels, ",") // no label has a comma
	r.names = r.names || len(r.labels) > maxTerms
}

// alike has nodes in one domain that suit the Job's Pods alike, whatever runs there.
func (j *Job) alike(v view) topology {
	if j.reads.names {
		return v.eachNode().topology
	}
	return v.topologies.alike(&j.reads, v.work, j.nodeWork.Field)
}

// onceOf asks about one of the nodes that are alike for a Job, for all of them.
func onceOf[T any](j *Job, v view, ask func(node int) T) func(node int) T {
	if j.reads.names {
		return ask
	}
	return onceIn(j.alike(v), ask)
}

// onceIn asks about one node of each domain.
func onceIn[T any](alike topology, ask func(node int) T) func(node int) T {
	asked, answers := make([]bool, alike.size), make([]T, alike.size)
	return func(node int) T {
		kind := alike.at[node]
		if !asked[kind] {
			asked[kind], answers[kind] = true, ask(node)
		}
		return answers[kind]
	}
}
