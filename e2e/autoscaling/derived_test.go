package autoscaling_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// nodePool has w1 say what Karpenter may add, and whether it can now.
func (s *scene) nodePool(limits, ready string) {
	s.Apply(s.Cluster("w1"), "", `{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"`+s.pool+`"},"spec":{"limits":`+limits+`,
		"template":{"spec":{"requirements":[{"key":"kubernetes.io/os","operator":"Exists"}]}}},"status":{"conditions":[{"type":"Ready","status":"`+ready+`"}]}}`)
}

// said waits until a worker's condition Schedulable says so.
func (s *scene) said(worker, text string) {
	s.WorkerUntil(worker, func(w *v1alpha1.WorkerCluster) bool {
		c := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionSchedulable)
		return c != nil && strings.Contains(c.Message, text)
	})
}

// A WorkerCluster says nothing of what can be added: its NodePools and their nodes show it, also
// when the last node is gone.
func TestNodePoolsShowWhatCanBeAdded(t *testing.T) {
	s := open(t, 2)
	s.RunManager(slow)
	s.AddKarpenter("w1")
	s.nodePool(`{"cpu":"8"}`, "True")
	s.registers("null")
	s.said("w1", "NodePools "+s.pool+": no node of them has been seen")
	s.said("w2", "the worker has no NodePools")
	s.submit("early")
	s.EventUntil("early", "Pending", "0/2 clusters available")

	s.w1.adds(s.Context(), t) // somebody in the worker has Karpenter add the first one
	if at := s.endedAt("early"); at != "w1" {
		t.Errorf("early ran on %s", at)
	}
	s.said("w1", "Jobs may be placed here")
	s.w1.untilEmpty(s.Context(), t)
	s.submit("wide", rigtest.Parallel(2))
	s.EventUntil("wide", "Placed", "Placed on worker w1, after scale-up")
	s.submit("wider", rigtest.Parallel(3), rigtest.RunFor(time.Second))
	s.EventUntil("wider", "Pending", "0/2 clusters available")
	s.HubJobUntil("wide", rigtest.Complete)

	s.nodePool(`{"cpu":"12"}`, "False")
	s.w1.untilEmpty(s.Context(), t)
	s.submit("next")
	s.EventUntil("next", "Pending", "0/2 clusters available")
	s.w1.may(3)
	s.nodePool(`{"cpu":"12"}`, "True")
	for _, name := range []string{"wider", "next"} {
		if at := s.endedAt(name); at != "w1" {
			t.Errorf("%s ran on %s", name, at)
		}
	}
}

// While cluster-autoscaler says that a node group is in backoff, Jobs go elsewhere, and nobody
// waits for podStartTimeout.
func TestNodeGroupInBackoffIsPassedOver(t *testing.T) {
	s := open(t, 4)
	// before a manager, which knows the workers of the test before, reads that there is nothing
	s.says("Backoff")
	s.RunManager(slow)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context()) // it's over before the cleanup
		if err := s.Cluster("w1").Client().CoreV1().ConfigMaps(metav1.NamespaceSystem).Delete(ctx, "cluster-autoscaler-status", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	s.w1.isOut(true)
	s.registers("null")
	s.said("w1", "no nodeTemplates") // it has been read
	s.registers(s.template(4))
	s.submit("first", rigtest.Parallel(2))
	if at := s.endedAt("first"); at != "w2" || s.HasEvent("first", "Moved", "") {
		t.Errorf("first ran on %s", at)
	}
	s.says("NoActivity")
	s.SetWorker("w1", `{"podStartTimeout":"10m"}`)
	s.submit("stays", inW1)
	s.HubJobUntil("stays", ferrytest.IsAt("w1"))
	s.w2.untilEmpty(s.Context(), t)
	s.submit("leaves")
	s.EventUntil("leaves", "PodsWaiting", "Worker w1")
	s.says("Backoff")
	if at := s.endedAt("leaves"); at != "w2" {
		t.Errorf("leaves ran on %s", at)
	}
	s.w1.isOut(false)
	s.says("NoActivity")
	s.submit("more", inW1, rigtest.Parallel(2)) // goes there when that has been read
	s.HubJobUntil("more", rigtest.Complete)
	s.HubJobUntil("stays", rigtest.Complete)
	s.w2.untilEmpty(s.Context(), t)
	s.submit("third")
	s.HubJobUntil("third", ferrytest.IsAt("w1"))
	s.HubJobUntil("third", rigtest.Complete)
	s.report(t, 4)
}

// says has cluster-autoscaler say so of the node group of w1.
func (s *scene) says(scaleUp string) {
	s.Apply(s.Cluster("w1"), metav1.NamespaceSystem, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cluster-autoscaler-status"},
		"data":{"status":"nodeGroups: [{name: grows, health: {maxSize: 9}, scaleUp: {status: `+scaleUp+`}}]"}}`)
}
