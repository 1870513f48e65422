package clusters

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement"
)

// TestAWorkerThatForbidsARule is used without it, and says so.
func TestAWorkerThatForbidsARule(t *testing.T) {
	w := newWorld(t)
	c := w.server.Add("c", "uid", "t")
	c.Forbid("resourcequotas", true)
	worker := w.register("w1", c.Kubeconfig("t"))
	w.untilState(worker, Ready, v1alpha1.ReasonConnected)
	w.until("the rest is known", func() bool { return worker.View().Capacity.Known })
	const want = "the kubeconfig's user may not list and watch resourcequotas of all namespaces"
	if got := worker.View().Capacity; got.Unchecked != want || got.Listing || got.Missing != "" {
		t.Errorf("%+v", got)
	}
	if a := worker.Free(types.NamespacedName{Namespace: "n"}, placement.Reads{}).Admission; a.PriorityClasses == nil {
		t.Error("the other rules aren't known")
	}
	c.Forbid("resourcequotas", false)
	w.until("it's allowed", func() bool { return worker.View().Capacity.Unchecked == "" })
}

// TestAWorkerThatFailsToListARule gets Jobs without it.
func TestAWorkerThatFailsToListARule(t *testing.T) {
	w := newWorld(t)
	c := w.server.Add("c", "uid", "t")
	c.Break("priorityclasses", true)
	worker := w.register("w1", c.Kubeconfig("t"))
	w.until("the rest is known", func() bool { return worker.View().Capacity.Known })
	if a := worker.Free(types.NamespacedName{Namespace: "n"}, placement.Reads{}).Admission; a.PriorityClasses != nil {
		t.Error("it's known what could not be listed")
	}
	c.Break("priorityclasses", false)
	w.until("it's listed", func() bool {
		return worker.Free(types.NamespacedName{Namespace: "n"}, placement.Reads{}).Admission.PriorityClasses != nil
	})
}

// TestDevicesAreWatchedWhereThereAreClasses, and not in most workers.
func TestDevicesAreWatchedWhereThereAreClasses(t *testing.T) {
	w := newWorld(t)
	without, with := w.server.Add("without", "uid-1", "t"), w.server.Add("with", "uid-2", "t")
	with.Answer("watch deviceclasses", http.NotFound)
	with.Answer("get deviceclasses", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"DeviceClassList","apiVersion":"resource.k8s.io/v1","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"gpus"}}]}`)
	})
	free := func(worker *Worker) *placement.Snapshot {
		return worker.Free(types.NamespacedName{Namespace: "n"}, placement.Reads{})
	}
	none, some := w.register("w1", without.Kubeconfig("t")), w.register("w2", with.Kubeconfig("t"))
	for _, worker := range []*Worker{none, some} {
		w.until("all is known", func() bool { return worker.View().Capacity.Known && worker.View().Version != "" })
	}
	if got := free(none); got.Devices != nil || got.DevicesUnknown || without.Requests("watch resourceslices") > 0 {
		t.Errorf("without classes: %v, unknown: %t", got.Devices, got.DevicesUnknown)
	}
	if got := free(some); got.Devices == nil || got.DevicesUnknown {
		t.Errorf("with classes: %v, unknown: %t", got.Devices, got.DevicesUnknown)
	}
	with.Forbid("resourceclaims", true)
	w.server.Cut()
	w.until("they aren't known any more", func() bool { got := free(some); return got.Devices == nil && got.DevicesUnknown })
	w.until("it's said", func() bool { return strings.Contains(some.View().Capacity.Unchecked, "resourceclaims") })
}

// Placement waits for the Pods that take room, and for no others.
func TestTheTimesOfPodsAreListedAfterThoseThatTakeRoom(t *testing.T) {
	w := newWorld(t)
	c := w.server.Add("c", "uid", "t")
	begin := make(chan struct{})
	var answered atomic.Bool
	c.Answer("watch pods", http.NotFound)
	c.Answer("get pods", func(w http.ResponseWriter, req *http.Request) {
		switch isOfTimes := req.URL.Query().Get("fieldSelector") == ""; {
		case isOfTimes && !answered.Load():
			t.Error("they are listed first")
		case !isOfTimes:
			select {
			case <-begin:
			case <-req.Context().Done():
			}
			answered.Store(true)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
	})
	worker := w.register("w1", c.Kubeconfig("t"))
	w.until("what is listed beside Pods is", func() bool { return worker.View().Capacity.Listing && c.Requests("watch resourcequotas") > 0 })
	if state := worker.View().Capacity; state.TimesKnown || !state.TimesListing {
		t.Errorf("before: %+v", state)
	}
	close(begin)
	w.until("the times are known", func() bool { return worker.View().Capacity.TimesKnown })
}

// TestAWorkerWithTooManyQuotas is used without them.
func TestAWorkerWithTooManyQuotas(t *testing.T) {
	w := newWorld(t)
	c := w.server.Add("c", "uid", "t")
	c.Answer("watch resourcequotas", http.NotFound)
	c.Answer("get resourcequotas", func(w http.ResponseWriter, req *http.Request) {
		from := 0
		_, _ = fmt.Sscan(req.URL.Query().Get("continue"), &from) // the first page has none
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind":"ResourceQuotaList","apiVersion":"v1","metadata":{"resourceVersion":"1","continue":"%d"},"items":[`, from+500)
		for i := range 500 - 1 {
			fmt.Fprintf(w, `{"metadata":{"namespace":"n","name":"q%d"},"status":{"hard":{"pods":"0"}}},`, from+i)
		}
		fmt.Fprintf(w, `{"metadata":{"namespace":"n","name":"last%d"}}]}`, from)
	})
	worker := w.register("w1", c.Kubeconfig("t"))
	w.until("it's said", func() bool {
		return strings.Contains(worker.View().Capacity.Unchecked, "it has more than 10000 resourcequotas, or they take more than 32 MiB")
	})
	w.untilState(worker, Ready, v1alpha1.ReasonConnected)
	w.until("the rest is known", func() bool { return worker.View().Capacity.Known })
	if quotas := worker.Free(types.NamespacedName{Namespace: "n"}, placement.Reads{}).Admission.Quotas; len(quotas) > 0 {
		t.Errorf("%d quotas are known, though not all", len(quotas))
	}
}

// An API server that refuses what it allowed a moment ago, as it starts perhaps, doesn't have all
// Jobs that wait fit into its worker. What it refuses for longer isn't known any more.
func TestCapacityOutlivesAMomentsRefusal(t *testing.T) {
	w := newWorld(t)
	c := w.server.Add("c", "uid", "t")
	worker := w.register("w1", c.Kubeconfig("t"))
	w.until("it's known", func() bool { return worker.View().Capacity.Known })
	for _, resource := range []string{"nodes", "pods", "priorityclasses"} {
		c.Forbid(resource, true)
	}
	refused := c.Requests("watch nodes") + 1
	c.BreakWatches(true)
	w.until("it's refused again", func() bool {
		if view := worker.View(); !view.Capacity.Known || view.Capacity.Unchecked != "" {
			t.Fatalf("it isn't known: %+v", view.Capacity)
		}
		return c.Requests("watch nodes") > refused
	})
	if free := worker.Free(types.NamespacedName{Namespace: "n"}, placement.Reads{}); free == nil || free.Admission.PriorityClasses == nil {
		t.Error("Jobs aren't judged by what was known")
	}
	w.until("it counts as unknown", func() bool { return worker.View().Capacity.Missing != "" })
}
