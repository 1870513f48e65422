package autoscaling_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/jobferry/jobferry/e2e/rig"
)

const (
	// nodeDelay is the time from when a Pod waits until its node is there.
	nodeDelay = 2 * time.Second
	// nodeIdle is how long a node stays for which there is no Pod.
	nodeIdle = 3 * time.Second
	// pace is how often the autoscaler looks.
	pace = 200 * time.Millisecond
	// claimEvery is how often it makes a NodeClaim, while it has no machines.
	claimEvery = 5 * time.Second
	// nodeCPU is a new node's: a Pod of these tests takes all of it.
	nodeCPU = "4"
)

// autoscaler adds nodes to a worker for the Pods that want one of its pool, and takes them away
// when they have been idle. A Pod takes a whole node.
type autoscaler struct {
	cluster *rig.Cluster
	label   string // of its nodes, whose value is the pool
	pool    string

	mu sync.Mutex
	// most is how many nodes it may have; out: it gets none.
	most int
	out  bool
	// karpenter: while out, it makes NodeClaims, the last time at failed. claimed counts them.
	karpenter bool
	failed    time.Time
	claimed   int
	// made counts its nodes, vain those that went without ever having had a Pod, and peak is how many
	// there were at once.
	made, vain, peak int
	nodes            map[string]*node
	waits            map[string]time.Time // Pods, since when they were seen to wait
}

type node struct {
	used bool
	idle time.Time // since when
}

// autoscale runs an autoscaler in a worker until the test ends.
func autoscale(ctx context.Context, t *testing.T, c *rig.Cluster, label, pool string, most int) *autoscaler {
	t.Helper()
	a := &autoscaler{cluster: c, label: label, pool: pool, most: most, nodes: map[string]*node{}, waits: map[string]time.Time{}}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		<-ended
		a.removeAll(t)
	})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(pace)
		defer ticker.Stop()
		for {
			if err := a.sync(ctx, time.Now()); err != nil && ctx.Err() == nil {
				t.Errorf("autoscaler of %s: %v", c.Name(), err)
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}()
	return a
}

func (a *autoscaler) isOut(is bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.out = is
}

func (a *autoscaler) isKarpenter(is bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.karpenter = is
}

func (a *autoscaler) counts() (made, vain, peak int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.made, a.vain, a.peak
}

// sync adds and removes nodes.
func (a *autoscaler) sync(ctx context.Context, now time.Time) error {
	pods, err := a.cluster.Client().CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	a.mu.Lock()
	add, remove := a.decide(pods.Items, now)
	fails := a.karpenter && a.out && len(a.waits) > 0 && now.Sub(a.failed) >= claimEvery
	if fails {
		a.failed = now
	}
	a.mu.Unlock()
	if fails {
		if err := a.claimFails(ctx); err != nil {
			return err
		}
	}
	nodes := a.cluster.Client().CoreV1().Nodes()
	for _, name := range add {
		if _, err := nodes.Create(ctx, a.node(name), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for _, name := range remove {
		if err := nodes.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// decide is what an autoscaler does now.
func (a *autoscaler) decide(pods []corev1.Pod, now time.Time) (add, remove []string) {
	busy, waits := map[string]bool{}, map[string]time.Time{}
	for i := range pods {
		pod := &pods[i]
		if n := a.nodes[pod.Spec.NodeName]; n != nil {
			n.used = true // also if the Pod was there for a moment only
		}
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		switch {
		case ended || pod.Spec.NodeSelector[a.label] != a.pool:
		case pod.Spec.NodeName != "":
			busy[pod.Spec.NodeName] = true
		case unschedulable(pod):
			if waits[string(pod.UID)] = a.waits[string(pod.UID)]; waits[string(pod.UID)].IsZero() {
				waits[string(pod.UID)] = now
			}
		}
	}
	a.waits = waits
	free := 0
	for name, n := range a.nodes {
		switch {
		case busy[name]:
			n.idle = now
		case now.Sub(n.idle) < nodeIdle || free < len(waits): // kube-scheduler may take its time
			free++
		default:
			if !n.used {
				a.vain++
			}
			delete(a.nodes, name)
			remove = append(remove, name)
		}
	}
	for _, since := range waits {
		if free--; free >= 0 || a.out || len(a.nodes) >= a.most || now.Sub(since) < nodeDelay {
			continue
		}
		a.made++
		name := fmt.Sprintf("%s-%d", a.pool, a.made)
		a.nodes[name] = &node{idle: now}
		add = append(add, name)
	}
	a.peak = max(a.peak, len(a.nodes))
	return add, remove
}

func unschedulable(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
			return true
		}
	}
	return false
}

func (a *autoscaler) node(name string) *corev1.Node {
	resources := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(nodeCPU), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux", a.label: a.pool}},
		Status:     corev1.NodeStatus{Capacity: resources, Allocatable: resources},
	}
}

// removeAll takes the nodes away when the test has ended.
func (a *autoscaler) removeAll(t *testing.T) {
	// the test's own has ended
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for name := range a.nodes {
		if err := a.cluster.Client().CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("node %s: %v", name, err)
		}
	}
}

// may changes how many nodes it may have.
func (a *autoscaler) may(most int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.most = most
}

// adds adds a node that no Pod waits for.
func (a *autoscaler) adds(ctx context.Context, t *testing.T) {
	t.Helper()
	a.mu.Lock()
	a.made++
	name := fmt.Sprintf("%s-%d", a.pool, a.made)
	a.nodes[name] = &node{idle: time.Now().Add(time.Minute)} // it stays until it has been used
	a.mu.Unlock()
	if _, err := a.cluster.Client().CoreV1().Nodes().Create(ctx, a.node(name), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// untilEmpty waits until it has no nodes any more.
func (a *autoscaler) untilEmpty(ctx context.Context, t *testing.T) {
	t.Helper()
	err := wait.PollUntilContextCancel(ctx, pace, true, func(ctx context.Context) (bool, error) {
		list, err := a.cluster.Client().CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: a.label + "=" + a.pool})
		return err == nil && len(list.Items) == 0, err
	})
	if err != nil {
		t.Fatal(err)
	}
}
