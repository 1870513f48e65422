package rig

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// nodeObjects makes the Node objects of a cluster.
func nodeObjects(o Options) ([]*corev1.Node, error) {
	var nodes []*corev1.Node
	for i, shape := range o.Nodes {
		shape = shape.complete(i)
		resources, err := shape.resources()
		if err != nil {
			return nil, fmt.Errorf("nodes %q: %w", shape.Prefix, err)
		}
		for n := range shape.Count {
			nodes = append(nodes, shape.object(shape.Prefix+"-"+strconv.Itoa(n), string(o.Release), resources))
		}
	}
	return nodes, nil
}

// complete fills in the defaults of the i-th shape of a cluster.
func (n Nodes) complete(i int) Nodes {
	n.Count = max(n.Count, 1)
	if n.Prefix == "" && i == 0 {
		n.Prefix = "node"
	}
	if n.Prefix == "" {
		n.Prefix = "node-" + string(rune('a'+i))
	}
	if n.CPU == "" {
		n.CPU = "32"
	}
	if n.Memory == "" {
		n.Memory = "256Gi"
	}
	if n.Pods == 0 {
		n.Pods = 110
	}
	return n
}

func (n Nodes) resources() (corev1.ResourceList, error) {
	quantities := map[string]string{"cpu": n.CPU, "memory": n.Memory, "pods": strconv.Itoa(n.Pods)}
	maps.Copy(quantities, n.Extended)
	list := corev1.ResourceList{}
	for name, s := range quantities {
		q, err := resource.ParseQuantity(s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		list[corev1.ResourceName(name)] = q
	}
	return list, nil
}

func (n Nodes) object(name, release string, resources corev1.ResourceList) *corev1.Node {
	labels := map[string]string{
		corev1.LabelHostname: name, corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux",
	}
	maps.Copy(labels, n.Labels)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.NodeSpec{Taints: n.Taints},
		Status: corev1.NodeStatus{
			Capacity: resources, Allocatable: resources,
			NodeInfo: corev1.NodeSystemInfo{
				Architecture: "amd64", OperatingSystem: "linux", KubeletVersion: "v" + release + ".0",
				ContainerRuntimeVersion: "kwok", OSImage: "simulated",
			},
		},
	}
}

// createNodes creates Nodes, some at a time: a cluster may have thousands.
func createNodes(ctx context.Context, client kubernetes.Interface, nodes []*corev1.Node) error {
	const workers = 8
	errs := make(chan error, workers)
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for i := w; i < len(nodes); i += workers {
				if _, err := client.CoreV1().Nodes().Create(ctx, nodes[i], metav1.CreateOptions{}); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	group.Wait()
	close(errs)
	return <-errs // nil when there was none
}

func nodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
