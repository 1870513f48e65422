package pods_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// The manager is away: the hub takes its Nodes for lost, and its Pods for not ready. An admin even
// deletes a Node, and podgc all Pods on it. Nothing of that ends a Pod in a worker, and when the
// manager is back, all is shown as it is.
func TestNobodyMeantIt(t *testing.T) {
	w := shown(t)
	w.Allow(5 * time.Minute)
	m, _ := w.runManager()
	w.Register("w1", "w2")
	w.Submit("lost", rigtest.RunForever(), rigtest.Parallel(2), ferrytest.OnWorker("w1"))
	w.Submit("removed", rigtest.RunForever(), rigtest.Parallel(2), ferrytest.OnWorker("w2"))
	w.HubJobUntil("lost", rigtest.Running(2))
	lost := w.shownAs("w1", "lost", running)
	w.HubJobUntil("removed", rigtest.Running(2))
	removed := w.shownAs("w2", "removed", running)

	m.Stop()
	w.Kubectl(w.Hub, "", "delete", "node", "jobferry-w2")
	w.nodeUntil("jobferry-w1", corev1.ConditionUnknown)
	for name := range lost {
		w.podUntil(w.Hub, name, func(p *corev1.Pod) bool { return !isReady(p) })
	}
	for name := range removed {
		w.podGone(w.Hub, name)
	}

	_, port := w.runManager()
	w.nodeUntil("jobferry-w1", corev1.ConditionTrue)
	w.shownAs("w1", "lost", running)
	w.shownAs("w2", "removed", running)
	w.same("w1", "lost", lost)
	w.same("w2", "removed", removed)
	if got := w.Kubectl(w.Hub, "", "get", "node", "jobferry-w1", "-o", "jsonpath={.status.daemonEndpoints.kubeletEndpoint.Port}"); got != fmt.Sprint(port) {
		t.Errorf("the Node has port %s", got)
	}
	// Nor is an eviction, which names who wants the Node's Pods away, and not whose they are.
	w.Kubectl(w.Hub, "", "drain", "jobferry-w1", "--force", "--timeout=60s")
	w.shownAs("w1", "lost", running)
	w.same("w1", "lost", lost)
}

// The hub removes Pods that have ended when there are many.
func TestManyThatHaveEnded(t *testing.T) {
	w := shown(t)
	w.Allow(3 * time.Minute)
	w.runManager()
	w.Register("w1", "w2")
	w.Submit("job", rigtest.RunFor(100*time.Millisecond), rigtest.Parallel(30), ferrytest.OnWorker("w1"))
	w.HubJobUntil("job", rigtest.Complete)
	there := w.pods(w.Cluster("w1"), "job")
	w.Until(rig.Objects(w.Hub.Client().CoreV1().RESTClient(), "pods", w.NS), func(runtime.Object) bool { return len(w.pods(w.Hub, "job")) <= 20 })
	w.same("w1", "job", there)
}

// A worker is drained: its Jobs' Pods are shown in the other.
func TestMove(t *testing.T) {
	w := shown(t)
	w.runManager()
	w.Register("w1", "w2")
	w.Submit("job", rigtest.RunForever(), rigtest.Parallel(2), ferrytest.WithSelector("name in (w1,w2)"))
	w.HubJobUntil("job", rigtest.Running(2))
	from := w.AssignedWorker("job")
	before := w.shownAs(from, "job", running)
	w.SetWorker(from, `{"drain":true}`)
	defer w.SetWorker(from, `{"drain":false}`)
	to := map[string]string{"w1": "w2", "w2": "w1"}[from]
	for name := range before {
		w.podGone(w.Hub, name)
	}
	w.PodUntil(w.Cluster(to), "job", running)
	w.PodUntil(w.Hub, "job", func(p *corev1.Pod) bool { return running(p) && p.Spec.NodeName == "jobferry-"+to })
}

// nodeUntil waits until a Node's condition Ready has a status.
func (w *world) nodeUntil(name string, ready corev1.ConditionStatus) {
	w.t.Helper()
	w.Until(rig.Object(w.Hub.Client().CoreV1().RESTClient(), "nodes", "", name), func(o runtime.Object) bool {
		node, is := o.(*corev1.Node)
		if !is {
			return false
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == ready {
				return true
			}
		}
		return false
	})
}
