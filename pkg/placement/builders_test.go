package placement_test

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/placement/internal/autoscaling"
	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
	"github.com/jobferry/jobferry/pkg/placement/internal/change"
	"github.com/jobferry/jobferry/pkg/placement/internal/scheduling"
)

// Cluster builds a cluster.
type Cluster struct{ cluster placement.Cluster }

// NewCluster is ready, of a current version and without known capacity, so that every Job fits.
func NewCluster(name string) *Cluster {
	return &Cluster{placement.Cluster{
		Name: name, Ready: true, Weight: 1, Minor: 36,
		JobController: v1alpha1.JobControllerBuiltIn, Labels: labels.Set{},
	}}
}

// Label of the WorkerCluster.
func (c *Cluster) Label(key, value string) *Cluster {
	c.cluster.Labels[key] = value
	return c
}

// Takes Jobs of the namespaces that a selector matches.
func (c *Cluster) Takes(namespaces labels.Selector) *Cluster {
	c.cluster.Namespaces = namespaces
	return c
}

// NotReady for a reason.
func (c *Cluster) NotReady(reason string) *Cluster {
	c.cluster.Ready, c.cluster.NotReady = false, reason
	return c
}

// Cordoned cluster.
func (c *Cluster) Cordoned() *Cluster {
	c.cluster.Cordoned = true
	return c
}

// Reserved for another Job.
func (c *Cluster) Reserved() *Cluster {
	c.cluster.Reserved = true
	return c
}

// Weight of the cluster's score.
func (c *Cluster) Weight(weight int32) *Cluster {
	c.cluster.Weight = weight
	return c
}

// Costs are pairs of a resource and its price.
func (c *Cluster) Costs(pairs ...string) *Cluster {
	c.cluster.Cost = v1alpha1.Cost(Quantities(pairs...))
	return c
}

// Dropping fields of a Job's spec.
func (c *Cluster) Dropping(paths ...string) *Cluster {
	c.cluster.Drops = map[string]bool{}
	for _, path := range paths {
		c.cluster.Drops[path] = true
	}
	return c
}

// Minor version of Kubernetes 1.
func (c *Cluster) Minor(minor int) *Cluster {
	c.cluster.Minor = minor
	return c
}

// VersionUnknown as before the first contact.
func (c *Cluster) VersionUnknown() *Cluster {
	c.cluster.Minor = 0
	return c
}

// Embedded Job controller.
func (c *Cluster) Embedded() *Cluster {
	c.cluster.JobController = v1alpha1.JobControllerEmbedded
	return c
}

// Nodes make the capacity known; no nodes at all are known to be none.
func (c *Cluster) Nodes(nodes ...*NodeBuilder) *Cluster {
	all := make([]*capacity.Node, len(nodes))
	for i, n := range nodes {
		all[i] = nodeOf(n)
	}
	c.cluster.Capacity = scheduling.NewPods(func(change.Change) {}).Snapshot(capacity.NewCapacity(all), types.NamespacedName{})
	return c
}

// Preempting lets Jobs preempt a Pod of a low priority, which has what is used of a node.
func (c *Cluster) Preempting(node string, pairs ...string) *Cluster {
	pods := scheduling.NewPods(func(change.Change) {})
	pods.Set(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "low", UID: "low"}, Spec: corev1.PodSpec{
		NodeName: node, Priority: ptr.To[int32](-1), RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: Quantities(pairs...)}}},
	}})
	var nodes []*capacity.Node
	for _, n := range c.cluster.Capacity.Nodes {
		nodes = append(nodes, n.Node)
	}
	s := *pods.Snapshot(capacity.NewCapacity(nodes), types.NamespacedName{})
	s.Preemption, s.Admission = true, &scheduling.Admission{PriorityClasses: map[string]*schedulingv1.PriorityClass{}}
	c.cluster.Capacity = &s
	return c
}

// Growing has an autoscaler, which adds up to so many nodes with so many CPUs.
func (c *Cluster) Growing(maxNodes int32, cpu string) *Cluster {
	s := *c.cluster.Capacity
	s.Autoscaling = autoscaling.NewRoom(autoscaling.GrowthOf(&v1alpha1.Autoscaling{NodeTemplates: []v1alpha1.NodeTemplate{
		{Name: "new", Labels: map[string]string{"new": ""}, MaxNodes: maxNodes, Allocatable: Quantities("cpu", cpu, "memory", "16Gi")},
	}}, nil), nil, nil)
	c.cluster.Capacity = &s
	return c
}

// nodeOf is a node as placement sees it.
func nodeOf(n *NodeBuilder) *capacity.Node {
	allocatable := capacity.ResourcesOf(n.Obj().Status.Allocatable)
	idle := allocatable.Add(capacity.ResourcesOf(n.TakenForGood), -1)
	return &capacity.Node{
		Object: n.Obj(), Allocatable: allocatable, Idle: idle, Free: idle.Add(capacity.ResourcesOf(n.Taken), -1),
	}
}

// Obj is the cluster.
func (c *Cluster) Obj() placement.Cluster { return c.cluster }
