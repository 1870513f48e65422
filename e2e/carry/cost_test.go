package carry_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager"
)

// requests counts the manager's requests about ConfigMaps of this test's namespace in a cluster, by
// verb.
func (f ferry) requests(c *rig.Cluster) map[string]int {
	f.t.Helper()
	all, err := c.Requests()
	f.check(err)
	counts := map[string]int{}
	for _, r := range all {
		ours := strings.HasPrefix(r.UserAgent, ferrytest.UserAgent) && r.Object.Resource == "configmaps"
		if ours && r.Object.Namespace == f.NS {
			counts[r.Verb]++
		}
	}
	return counts
}

// A Job for which nothing is carried costs no requests. A carried object costs two reads and a
// write, and no write after a restart.
func TestCost(t *testing.T) {
	f := ferryFor(t)
	m := f.RunManager()
	f.allow()
	f.set("w1", `{"carry":null}`)
	f.configMap(f.Hub, "settings", "a")
	f.Submit("bare", withConfigMap("settings", false))
	f.HubJobUntil("bare", rigtest.Complete)
	f.lacks("w1", "settings")
	f.checkRequests("hub, nothing carried", f.Hub, nil)
	f.checkRequests("worker, nothing carried", f.Cluster("w1"), nil)

	f.set("w1", carryAll)
	created := m.Metric("jobferry_carried_objects_total", "worker", "w1", "kind", "ConfigMap", "operation", "Create")
	f.Submit("job", rigtest.RunForever(), withConfigMap("settings", false))
	f.HubJobUntil("job", rigtest.Running(1))
	f.checkRequests("hub", f.Hub, map[string]int{"get": 1})
	f.checkRequests("worker", f.Cluster("w1"), map[string]int{"get": 1, "create": 1})
	if n := m.Metric("jobferry_carried_objects_total", "worker", "w1", "kind", "ConfigMap", "operation", "Create") - created; n != 1 {
		t.Errorf("%v creations are counted", n)
	}

	m.Stop()
	f.RunManager()
	f.WorkerUntil("w1", ferrytest.Ready)
	// its mirror comes after the first look at all Jobs
	f.Submit("next", withConfigMap("settings", false))
	f.HubJobUntil("next", rigtest.Complete)
	f.change(f.Hub, "settings", "b")
	f.configMapUntil("w1", "settings", configMapIs("b"))
	if writes := f.requests(f.Cluster("w1")); writes["create"] != 1 || writes["update"] != 1 || writes["delete"] != 0 {
		t.Errorf("after a restart: %v", writes)
	}
}

func (f ferry) checkRequests(where string, c *rig.Cluster, want map[string]int) {
	f.t.Helper()
	if got := f.requests(c); !maps.Equal(got, want) {
		f.t.Errorf("%s: %v, want %v", where, got, want)
	}
}

// What the WorkerCluster allows counts at once, also for Jobs that run: what it allows later is
// carried to them, and of what it doesn't allow any more no change is.
func TestAllowedLater(t *testing.T) {
	f := ferryFor(t)
	f.RunManager()
	f.allow()
	f.set("w2", `{"carry":null}`)
	f.configMap(f.Hub, "settings", "a")
	f.Submit("early", rigtest.RunForever(), ferrytest.OnWorker("w2"), withConfigMap("settings", false))
	f.HubJobUntil("early", rigtest.Running(1))
	f.set("w2", `{"carry":["ConfigMap"]}`)
	copied := f.configMapUntil("w2", "settings", configMapIs("a"))
	if !slices.Equal(owners(copied), []string{"early"}) {
		t.Errorf("owned by %v", owners(copied))
	}
	f.set("w2", `{"carry":null}`)
	f.WorkerUntil("w2", func(w *v1alpha1.WorkerCluster) bool {
		return len(w.Spec.Carry) == 0 && ferrytest.Observed(w)
	})
	f.change(f.Hub, "settings", "b")
	f.Submit("late", ferrytest.OnWorker("w2"), withConfigMap("settings", false))
	f.HubJobUntil("late", rigtest.Complete)
	f.configMapUntil("w2", "settings", configMapIs("a"))
}

// The next manager repairs a source that changes while no manager runs, and a copy that somebody
// changes in the worker.
func TestRestart(t *testing.T) {
	f := ferryFor(t)
	m := f.RunManager()
	f.allow()
	f.configMap(f.Hub, "settings", "a")
	f.configMap(f.Hub, "edited", "a")
	f.Submit("job", rigtest.RunForever(), withConfigMap("settings", false), withConfigMap("edited", false))
	f.HubJobUntil("job", rigtest.Running(1))
	f.Submit("waiting", withConfigMap("missing", false))
	f.MirrorUntil("w1", "waiting", ferrytest.Exists)
	m.Stop()
	f.change(f.Hub, "settings", "b")
	f.change(f.Cluster("w1"), "edited", "wrong")
	f.configMap(f.Hub, "missing", "a")
	f.RunManager()
	f.configMapUntil("w1", "settings", configMapIs("b"))
	f.configMapUntil("w1", "edited", configMapIs("a"))
	f.HubJobUntil("waiting", rigtest.Complete)
	if pods := f.Pods(f.Cluster("w1")); !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Labels["job-name"] == "job" }) {
		t.Error("the running Job has lost its Pod")
	}
}

// An object that is created in the worker is found after a while, without an event.
func TestProvidedInTheWorkerLater(t *testing.T) {
	f := ferryFor(t)
	f.RunManager(func(o *manager.Options) { o.Timing.Recheck = time.Second })
	f.allow()
	f.NamespaceIn("w1")
	f.Submit("job", withConfigMap("settings", false))
	f.EventUntil("job", v1alpha1.EventFailedCarry, "not found")
	f.configMap(f.Cluster("w1"), "settings", "theirs")
	f.HubJobUntil("job", rigtest.Complete)
}
