package autoscaling

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/jobferry/jobferry/pkg/util/objectnames"
	"github.com/jobferry/jobferry/pkg/util/quantities"
)

// LabelNodePool is what Karpenter labels the nodes of a NodePool with.
const LabelNodePool = "karpenter.sh/nodepool"

// What is read of a worker's NodePools.
const (
	// MaxPools bounds their number.
	MaxPools = 50
	// maxTerms bounds the requirements, taints and labels of each.
	maxTerms = 100
	// maxLimits bounds the limits of each: what each node has of all is added up.
	maxLimits = 16
	// maxPoolNodes is more than Kubernetes supports.
	maxPoolNodes = 15_000
)

// NodePool is one of Karpenter's, as a worker says. Immutable.
type NodePool struct {
	Name string
	// Adds: Karpenter adds nodes for Pods that wait. It doesn't while the NodePool isn't ready or
	// is being deleted, and never if it has a fixed number of nodes.
	Adds   bool
	Weight int32
	// Labels and Taints that each of its nodes has. Choices are the labels of which a node has one
	// value of several.
	Labels  map[string]string
	Taints  []corev1.Taint
	Choices map[string][]string
	// MaxNodes is how many nodes it may have, and Limits what they may have together.
	MaxNodes int64
	Limits   Limits

	requirements []corev1.NodeSelectorRequirement
}

// nodePool is what is read of the object.
type nodePool struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Template struct {
			Metadata struct {
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
			Spec struct {
				Taints       []corev1.Taint                   `json:"taints"`
				Requirements []corev1.NodeSelectorRequirement `json:"requirements"`
			} `json:"spec"`
		} `json:"template"`
		Limits   map[corev1.ResourceName]any `json:"limits"`
		Weight   int32                       `json:"weight"`
		Replicas *int64                      `json:"replicas"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// NodePools are read page by page.
type NodePools []NodePool

// maxPoolBytes bounds a NodePool as JSON: one that names all instance types of a cloud has a tenth.
const maxPoolBytes = 128 << 10

// Add reads a page of a list of NodePools (karpenter.sh/v1), as JSON, and returns where the next
// one begins; empty: no other is needed. What isn't a valid NodePool is left out.
func (p *NodePools) Add(page []byte) (next string, err error) {
	var list struct {
		Metadata metav1.ListMeta   `json:"metadata"`
		Items    []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(page, &list); err != nil {
		return "", err
	}
	valid := 0
	for _, item := range list.Items {
		var read nodePool
		if len(item) <= maxPoolBytes && json.Unmarshal(item, &read) == nil && read.isValid() {
			*p = append(*p, read.read())
			valid++
		}
	}
	if *p = p.first(); valid == 0 {
		return "", nil
	}
	return list.Metadata.Continue, nil
}

// first are those that Karpenter tries first. No API server has two of a name: the second would
// escape from the admin's template.
func (p NodePools) first() NodePools {
	names := map[string]bool{}
	all := slices.DeleteFunc(slices.SortedFunc(slices.Values(p), byWeight), func(p NodePool) bool {
		again := names[p.Name]
		names[p.Name] = true
		return again
	})
	return slices.Clone(all[:min(len(all), MaxPools)]) // the others go
}

func (p *nodePool) isValid() bool {
	t := &p.Spec.Template
	return valuesOf(t.Spec.Requirements) <= maxValues && objectnames.IsDNSSubdomain(p.Metadata.Name) && objectnames.AreLabels(t.Metadata.Labels) &&
		objectnames.AreTaints(t.Spec.Taints) && areRequirements(t.Spec.Requirements) &&
		max(len(t.Metadata.Labels), len(t.Spec.Taints), len(t.Spec.Requirements)) <= maxTerms && len(p.Spec.Limits) <= maxLimits
}

func areRequirements(all []corev1.NodeSelectorRequirement) bool {
	return objectnames.AreRequirements(all) && !slices.ContainsFunc(all, func(r corev1.NodeSelectorRequirement) bool { return !objectnames.AreLabelValues(r.Values) })
}

func (p *nodePool) read() NodePool {
	t := &p.Spec.Template
	pool := NodePool{
		Name: p.Metadata.Name, Weight: p.Spec.Weight, Taints: t.Spec.Taints,
		Adds:   p.Metadata.DeletionTimestamp == nil && p.Spec.Replicas == nil && p.isReady(),
		Labels: map[string]string{}, Choices: map[string][]string{}, MaxNodes: maxPoolNodes, requirements: t.Spec.Requirements,
	}
	maps.Copy(pool.Labels, t.Metadata.Labels)
	for i := range t.Spec.Requirements {
		if r := &t.Spec.Requirements[i]; r.Operator == corev1.NodeSelectorOpIn && len(r.Values) == 1 {
			pool.Labels[r.Key] = r.Values[0]
		} else if r.Operator == corev1.NodeSelectorOpIn {
			pool.Choices[r.Key] = r.Values
		}
	}
	pool.Labels[LabelNodePool] = pool.Name
	limits := p.limits()
	if nodes, is := limits["nodes"]; is {
		pool.MaxNodes = min(nodes.Value(), maxPoolNodes)
		delete(limits, "nodes")
	}
	pool.Limits = limitsOf(limits)
	return pool
}

// limits of the NodePool. What isn't a limit allows nothing of that resource.
func (p *nodePool) limits() corev1.ResourceList {
	limits := corev1.ResourceList{}
	for name, said := range p.Spec.Limits {
		limits[name] = resource.Quantity{}
		if q, err := quantities.Parse(fmt.Sprint(said)); err == nil && q.Sign() > 0 {
			limits[name] = q
		}
	}
	return limits
}

// isReady reports whether the NodePool doesn't say otherwise.
func (p *nodePool) isReady() bool {
	return !slices.ContainsFunc(p.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == "Ready" && c.Status == metav1.ConditionFalse
	})
}

// suits tells of a node whether it has what the NodePool requires now: it may have been made before
// a change.
func (p *NodePool) suits() func(node *corev1.Node) bool {
	known := slices.DeleteFunc(slices.Clone(p.requirements), func(r corev1.NodeSelectorRequirement) bool {
		return !slices.Contains(operators, r.Operator)
	})
	selector, err := nodeaffinity.NewNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: known}}})
	return func(node *corev1.Node) bool { return len(known) == 0 || err == nil && selector.Match(node) }
}

// operators are those that a node's labels are matched by; Karpenter has more.
var operators = []corev1.NodeSelectorOperator{
	corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist,
	corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt,
}

// byWeight has those first that Karpenter tries first.
func byWeight(a, b NodePool) int {
	return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.Name, b.Name))
}
