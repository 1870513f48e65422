package feed

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters/clustertest"
	"github.com/jobferry/jobferry/pkg/manager/clusters/internal/link"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/placement/placementtest"
)

const jsonType = "application/json"

// TestNodePoolsWithoutAnEnd: of a list whose pages never end, the first ones count.
func TestNodePoolsWithoutAnEnd(t *testing.T) {
	w := newAutoscaled(t, func(w http.ResponseWriter, req *http.Request) {
		from := 0
		_, _ = fmt.Sscan(req.URL.Query().Get("continue"), &from) // the first page has none
		var items []string
		for i := range poolsPerPage {
			items = append(items, fmt.Sprintf(`{"metadata":{"name":"p%d"}}`, from+i))
		}
		w.Header().Set("Content-Type", jsonType)
		fmt.Fprintf(w, `{"metadata":{"continue":"%d"},"items":[%s]}`, from+poolsPerPage, strings.Join(items, ","))
	}, claimsAnswer())
	w.until("they're read", func() bool { return w.reader.observed.Load() != nil })
	if n := len(w.reader.observed.Load().Pools); n != placementtest.MaxPools {
		t.Errorf("%d NodePools are known, want %d", n, placementtest.MaxPools)
	}
}

// claimsAnswer answers a watch of NodeClaims with events, and stays open.
func claimsAnswer(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		for _, event := range events {
			fmt.Fprint(w, event)
		}
		_ = http.NewResponseController(w).Flush() // the client is there, or the test ends anyway
		<-req.Context().Done()
	}
}

// failedClaim is an event of a NodeClaim that goes without a machine.
func failedClaim(uid, more string) string {
	return fmt.Sprintf(`{"type":"MODIFIED","object":{"metadata":{"uid":%q,"deletionTimestamp":%q,
		"labels":{"karpenter.sh/nodepool":"p"}},"spec":{"requirements":[%s]}}}`, uid, time.Now().Format(time.RFC3339), more)
}

// faster is by how much the time passes faster in a fastClock.
const faster = 100

type fastClock struct {
	clock.RealClock
	began time.Time
}

// Now implements clock.Clock.
func (c fastClock) Now() time.Time { return c.began.Add(faster * time.Since(c.began)) }

// Since implements clock.Clock.
func (c fastClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// After implements clock.Clock.
func (c fastClock) After(d time.Duration) <-chan time.Time { return c.RealClock.After(d / faster) }

// NewTimer implements clock.Clock.
func (c fastClock) NewTimer(d time.Duration) clock.Timer {
	return fastTimer{c.RealClock.NewTimer(d / faster)}
}

type fastTimer struct{ clock.Timer }

// Reset implements clock.Timer.
func (t fastTimer) Reset(d time.Duration) bool { return t.Timer.Reset(d / faster) }

// onePool answers with a NodePool.
func onePool(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", jsonType)
	fmt.Fprint(w, `{"metadata":{},"items":[{"metadata":{"name":"p"}}]}`)
}

// autoscaled is a worker with Karpenter, of which nothing else is read, and a fast clock.
type autoscaled struct {
	t      *testing.T
	link   *link.Link
	reader *autoscalerReader
}

func newAutoscaled(t *testing.T, pools, claims http.HandlerFunc) *autoscaled {
	t.Helper()
	server := clustertest.NewServer(func() {})
	c := server.Add("c", "uid", "t")
	c.Answer("get nodepools", pools)
	c.Answer("watch nodeclaims", claims)
	clock, nothing := fastClock{began: time.Now()}, func() {}
	l, err := link.New(link.Options{
		Worker: "w1", QPS: 1000, Burst: 1000, RequestTimeout: 10 * time.Second, ProbeInterval: 10 * time.Second, ProbeTimeout: 10 * time.Second,
		RetryDelay: time.Second, MaxBackoff: 10 * time.Second, Clock: clock, Wake: nothing,
		Mismatch: func(types.UID) (reason, message string) { return "", "" },
	})
	if err != nil {
		t.Fatal(err)
	}
	l.Lead(link.To(c.Kubeconfig("t")))
	if l.Keep(t.Context()); !l.Open() {
		t.Fatalf("%+v", l.Observation())
	}
	reader, err := newAutoscalerReader(l, placement.NewStore(func(placement.Change) {}).Ledger, autoscalerCallbacks{
		changed: nothing, grown: nothing, stuck: func(types.NamespacedName) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	reader.start(t.Context())
	t.Cleanup(func() {
		l.Close()
		reader.stop()
		server.Close()
	})
	return &autoscaled{t, l, reader}
}

// until waits for a condition.
func (w *autoscaled) until(what string, condition func() bool) {
	w.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			w.t.Fatalf("timed out waiting: %s", what)
		}
	}
}

// unchecked is what is said of the worker.
func (w *autoscaled) unchecked() string {
	return w.reader.missing(&v1alpha1.WorkerClusterSpec{Capacity: v1alpha1.CapacityAutoscaled})
}

// outs is how many machines don't come.
func (w *autoscaled) outs() int {
	if o := w.reader.observed.Load(); o != nil {
		return len(o.Out)
	}
	return 0
}

// TestNodeClaimsThatFail: what Karpenter can't get is out, and for a while.
func TestNodeClaimsThatFail(t *testing.T) {
	var asked atomic.Pointer[url.Values]
	w := newAutoscaled(t, onePool, func(w http.ResponseWriter, req *http.Request) {
		query := req.URL.Query()
		asked.Store(&query)
		claimsAnswer(`{"type":"ADDED","object":{"metadata":{"uid":"1","labels":{"karpenter.sh/nodepool":"p"}}}}`,
			failedClaim("1", ""), `{"type":"BOOKMARK","object":7}`)(w, req)
	})
	w.until("it's out", func() bool { return w.outs() == 1 })
	if got := asked.Load().Get("labelSelector"); got != new(placement.Launches).Selector() {
		t.Errorf("asked for %q", got)
	}
	w.until("it isn't any more", func() bool { return w.outs() == 0 })
}

// TestNodeClaimsOfAHostileWorker: however many fail in whatever ways, few are remembered; one that
// is too large puts the worker in quarantine.
func TestNodeClaimsOfAHostileWorker(t *testing.T) {
	var events []string
	for i := range 2000 {
		events = append(events, failedClaim(fmt.Sprint(i), fmt.Sprintf(`{"key":"topology.kubernetes.io/zone","operator":"In","values":["z%d"]}`, i)))
	}
	w := newAutoscaled(t, onePool, claimsAnswer(append(events, `nonsense`)...))
	w.until("they're out", func() bool { return w.outs() > 0 })
	if n := w.outs(); n > 50 {
		t.Errorf("%d are out", n)
	}
	w = newAutoscaled(t, onePool, claimsAnswer(failedClaim("1", `{"key":"`+strings.Repeat("a", 4<<20)+`"}`)))
	w.until("it's in quarantine", func() bool {
		w.link.Keep(t.Context())
		return w.link.Observation().Reason == v1alpha1.ReasonAnswerTooLarge
	})
}

// TestNodeClaimsWaitForNoRead: large events are taken in while NodePools are read for as long as
// the worker likes. Else they would keep the memory for all workers' answers for that long, and the
// answer to that very read would wait for them if it's large, too.
func TestNodeClaimsWaitForNoRead(t *testing.T) {
	large := strings.Repeat("a", 1<<20)
	var reads atomic.Int32
	reading, sent := make(chan struct{}), make(chan struct{})
	w := newAutoscaled(t, func(w http.ResponseWriter, req *http.Request) {
		if reads.Add(1) == 1 {
			onePool(w, req)
			return
		}
		if reads.Load() == 2 {
			close(reading)
		}
		select {
		case <-sent:
		case <-req.Context().Done():
			t.Error("NodeClaims wait for the end of a read")
			return
		}
		w.Header().Set("Content-Type", jsonType)
		fmt.Fprintf(w, `{"metadata":{},"items":[{"metadata":{"name":"p"}},{"metadata":{"name":"q"}},{"metadata":{"annotations":{"a":%q}}}]}`, large)
	}, func(w http.ResponseWriter, req *http.Request) {
		<-reading
		w.Header().Set("Content-Type", jsonType)
		for i := range 8 { // more than is received before anybody reads it
			fmt.Fprint(w, failedClaim(fmt.Sprint(i), `{"key":"`+large+`","operator":"Exists"}`))
		}
		close(sent)
		<-req.Context().Done()
	})
	w.until("a large answer comes after large events", func() bool {
		o := w.reader.observed.Load()
		return o != nil && len(o.Pools) == 2
	})
	w.until("they count", func() bool { return w.outs() == 1 })
}

// TestNodePoolsOutliveAMomentsRefusal: an API server that refuses what it allowed a moment ago has
// no Jobs wait for nodes that come, nor are they expected for ever.
func TestNodePoolsOutliveAMomentsRefusal(t *testing.T) {
	var reads atomic.Int32
	w := newAutoscaled(t, func(w http.ResponseWriter, req *http.Request) {
		if reads.Add(1) == 1 {
			onePool(w, req)
			return
		}
		w.WriteHeader(http.StatusForbidden)
	}, claimsAnswer())
	w.until("it's refused twice", func() bool { return reads.Load() > 3 })
	if o := w.reader.observed.Load(); len(o.Pools) != 1 {
		t.Errorf("%d NodePools are known", len(o.Pools))
	}
	w.until("they count no more", func() bool { return len(w.reader.observed.Load().Pools) == 0 })
}

// TestNodeClaimsThatMayNotBeWatched: that's said, and the NodePools count all the same.
func TestNodeClaimsThatMayNotBeWatched(t *testing.T) {
	w := newAutoscaled(t, onePool, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
	})
	w.until("it's said", func() bool { return strings.Contains(w.unchecked(), "watch nodeclaims.karpenter.sh") })
	if n := len(w.reader.observed.Load().Pools); n != 1 {
		t.Errorf("%d NodePools are known", n)
	}
}

// TestNodeClaimsWithoutNodePools: when Karpenter has gone, they aren't watched any more, and
// nothing is said of them.
func TestNodeClaimsWithoutNodePools(t *testing.T) {
	var begun, ended, none atomic.Bool
	w := newAutoscaled(t, func(w http.ResponseWriter, req *http.Request) {
		if !none.Load() {
			onePool(w, req)
			return
		}
		w.Header().Set("Content-Type", jsonType)
		fmt.Fprint(w, `{"metadata":{},"items":[]}`)
	}, func(w http.ResponseWriter, req *http.Request) {
		begun.Store(true)
		claimsAnswer()(w, req)
		ended.Store(true)
	})
	w.until("they're watched", begun.Load)
	none.Store(true)
	w.until("the watch has ended", ended.Load)
	w.reader.claimsForbidden.Store(true) // as it was when there were NodePools
	if why := w.unchecked(); !strings.Contains(why, "has no NodePools") || strings.Contains(why, "nodeclaims") {
		t.Errorf("said %q", why)
	}
}

// TestMachinesThatDontCome are no change of the worker: whoever makes Pods there decides how often
// there are others. Jobs that may fit again are looked at, and those whose Pods wait for such a
// machine.
func TestMachinesThatDontCome(t *testing.T) {
	job := placementtest.NewJob("j")
	pod := job.Pod("p")
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	clock, ledger := clocktesting.NewFakeClock(time.Unix(0, 0)), placement.NewStore(func(placement.Change) {}).Ledger
	ledger.SetPod(pod)
	var changed, grown, stuck int
	r := &autoscalerReader{clock: clock, claims: claimWatch{clock: clock}, ledger: ledger, autoscalerCallbacks: autoscalerCallbacks{
		changed: func() { changed++ },
		grown:   func() { grown++ },
		stuck: func(key types.NamespacedName) {
			if stuck++; key != job.Key() {
				t.Errorf("%s is stuck", key)
			}
		},
	}}
	r.observe((*placement.Observed)(nil).Update(nil, "", nil))
	r.claims.see(placementtest.FailedClaim("p", clock.Now()))
	for i, want := range []struct {
		step                  time.Duration
		changed, grown, stuck int
	}{{0, 1, 0, 0}, {time.Minute, 1, 1, 1}, {time.Second, 1, 1, 1}, {time.Hour, 1, 2, 1}} {
		clock.Step(want.step)
		if r.observe(r.observed.Load()); changed != want.changed || grown != want.grown || stuck != want.stuck {
			t.Errorf("%d: changed %d, grown %d, stuck %d; want %+v", i, changed, grown, stuck, want)
		}
	}
}
