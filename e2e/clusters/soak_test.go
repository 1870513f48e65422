package clusters

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/clusters/clustertest"
)

const (
	soakWorkers = 200
	// A worker has some seventy goroutines and some hundred KB: if each left one goroutine or
	// its transport (25 KiB) behind, it would show. About 4 MiB grow once, however many workers
	// there are, and Go keeps a descriptor for each goroutine that there was at once.
	slackGoroutines = soakWorkers / 2
	slackBytes      = 8 << 20
	descriptorBytes = 480
)

func TestTwoHundredWorkersComeAndGo(t *testing.T) {
	h := newHub(t, func(o *clusters.Options) {
		o.Recorder = &events.FakeRecorder{} // client-go's remembers events for some minutes
		// All are probed by one process, which must keep up on a loaded machine.
		o.ProbeInterval, o.ProbeTimeout = 10*time.Second, time.Minute
	})
	server := clustertest.NewServer(func() {})
	t.Cleanup(server.Close)
	h.round(server, "first", 1) // what grows once, has grown
	goroutines, bytes := runtime.NumGoroutine(), liveBytes()
	descriptors := uint64(h.round(server, "soak", soakWorkers)) * descriptorBytes
	// Timers of closed connections hold some memory until they run out.
	h.check(h.await(func() bool {
		return runtime.NumGoroutine() <= goroutines+slackGoroutines && liveBytes() <= bytes+descriptors+slackBytes
	}))
	t.Logf("from %d to %d goroutines, from %d to %d KiB", goroutines, runtime.NumGoroutine(), bytes>>10, liveBytes()>>10)
	families, err := h.metrics.Gather()
	h.check(err)
	for _, family := range families {
		if strings.HasPrefix(family.GetName(), "jobferry_worker_") {
			t.Errorf("%s has %d series", family.GetName(), len(family.GetMetric()))
		}
	}
}

// round registers workers, waits until all are ready, and removes them. It returns how many
// goroutines there were.
func (h *hub) round(server *clustertest.Server, prefix string, n int) (goroutines int) {
	h.t.Helper()
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", prefix, i)
		c := server.Add(names[i], types.UID(names[i]), "token")
		h.register(names[i], c.Kubeconfig("token"))
	}
	start := time.Now()
	h.check(h.await(func() bool {
		for _, w := range h.registry.List() {
			if w.View().State != clusters.Ready {
				return false
			}
		}
		return len(h.registry.List()) == n
	}))
	goroutines = runtime.NumGoroutine()
	h.t.Logf("%d workers are ready after %v; %d goroutines", n, time.Since(start), goroutines)
	h.check(h.await(func() bool { return h.count(ready(v1alpha1.ReasonConnected)) == n }))
	h.check(h.client.DeleteAllOf(h.Context(), &corev1.Secret{}, client.InNamespace(h.namespace), client.MatchingLabelsSelector{Selector: clusters.RegistrationSelector()}))
	h.check(h.await(func() bool { return len(h.registry.List()) == 0 }))
	h.check(h.await(func() bool { return h.count(func(*v1alpha1.WorkerCluster) bool { return true }) == 0 }))
	return goroutines
}

// count counts the WorkerClusters that meet a condition.
func (h *hub) count(condition func(*v1alpha1.WorkerCluster) bool) int {
	h.t.Helper()
	var all v1alpha1.WorkerClusterList
	h.check(h.client.List(h.Context(), &all))
	n := 0
	for i := range all.Items {
		if condition(&all.Items[i]) {
			n++
		}
	}
	return n
}

func liveBytes() uint64 {
	runtime.GC()
	runtime.GC() // the second frees what the first one found to be finalized
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestAtRest asks the hub's audit log what a manager at rest asks of the hub.
func TestAtRest(t *testing.T) {
	h := newHub(t)
	h.register("w1", h.Cluster("w1").KubeconfigBytes())
	h.register("broken", []byte("rubbish"))
	h.until("w1", func(wc *v1alpha1.WorkerCluster) bool {
		return ready(v1alpha1.ReasonConnected)(wc) && wc.Status.Nodes == 2
	})
	h.until("broken", ready(v1alpha1.ReasonKubeconfigInvalid))
	h.untilEvent("WorkerCluster", "w1", v1alpha1.ReasonConnected)
	h.untilEvent("WorkerCluster", "broken", v1alpha1.ReasonKubeconfigInvalid)

	const settle, quiet = 3 * time.Second, 15 * time.Second // the second is what is measured
	<-time.After(settle)
	begin := time.Now()
	<-time.After(quiet)
	requests, err := h.cluster.Requests()
	h.check(err)
	for _, r := range requests {
		if strings.HasPrefix(r.UserAgent, userAgent) && r.Received.After(begin) && r.Verb != "watch" {
			t.Errorf("at rest: %s %s", r.Verb, r.URI)
		}
	}
}
