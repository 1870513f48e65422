package line

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/group"
	"github.com/jobferry/jobferry/pkg/manager/line/waiting"
	"github.com/jobferry/jobferry/pkg/mirror/mirrortest"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/placement/placementtest"
)

// hall is a line with one worker, a, that has 8 CPUs, and with what the line had enqueued.
type hall struct {
	*Line
	jobs map[types.NamespacedName]*batchv1.Job
	// passedOver is what is known of each Job.
	passedOver map[string]string
	store      *placement.Store
	enqueued   []types.NamespacedName
	// mutex guards enqueued where walks run by themselves.
	mutex sync.Mutex
	// unlimited: its nodes are not known.
	full, unlimited bool
	// autoscaling is what it may add, and asked counts the questions what that is.
	autoscaling *v1alpha1.Autoscaling
	asked       int
}

func newHall() *hall {
	h := &hall{jobs: map[types.NamespacedName]*batchv1.Job{}, passedOver: map[string]string{}, store: placement.NewStore(func(placement.Change) {})}
	h.store.Ledger.SetNode(placementtest.NewNode("node").Has("cpu", "8", "pods", "110").Obj())
	clock := clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0))
	h.Line = New(h, h, NewRuntimes(), clock, time.Minute)
	return h
}

func (h *hall) Name() string { return "a" }
func (h *hall) View() clusters.View {
	v := clusters.View{}
	v.State, v.Version, v.Capacity.Known, v.Full = clusters.Ready, "v1.36.0", !h.unlimited, h.full
	return v
}
func (h *hall) Free(job types.NamespacedName, _ placement.Reads) *placement.Snapshot {
	return h.store.Snapshot(job, 36, nil)
}
func (h *hall) Room(job types.NamespacedName) *placement.Room {
	h.asked++
	return h.store.Room(job, &placement.Autoscaler{Spec: h.autoscaling})
}
func (h *hall) Ledger() *placement.Ledger          { return h.store.Ledger }
func (h *hall) Worker(name string) (Worker, bool)  { return h, name == "a" }
func (h *hall) Workers() []Worker                  { return []Worker{h} }
func (h *hall) Drops(WorkerReader) map[string]bool { return nil }
func (h *hall) StockoutsChanged(string)            {}

func (h *hall) Cached(_ context.Context, key types.NamespacedName) *batchv1.Job { return h.jobs[key] }
func (h *hall) PassedOver(types.NamespacedName) map[string]string               { return maps.Clone(h.passedOver) }
func (h *hall) Admission(context.Context, *batchv1.Job) dispatch.Admission {
	return dispatch.Admission{}
}
func (h *hall) PlacedOn(string) []types.NamespacedName                   { return nil }
func (h *hall) AwaitingPods(string) []types.NamespacedName               { return nil }
func (h *hall) AwaitingCapacity() []types.NamespacedName                 { return nil }
func (h *hall) CountAwaitingCapacity() int                               { return 0 }
func (h *hall) Run(types.NamespacedName) (at time.Time, _ time.Duration) { return at, 0 }
func (h *hall) Reserver(types.NamespacedName) Reserver                   { return nil }
func (h *hall) ReturnsNow(types.NamespacedName)                          {}
func (h *hall) GroupPlaces(group.ID) []group.Place                       { return nil }
func (h *hall) MayPlace() bool                                           { return true }
func (h *hall) EnqueueRelated(keys ...types.NamespacedName)              { h.Enqueue(keys...) }
func (h *hall) Enqueue(keys ...types.NamespacedName) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.enqueued = append(h.enqueued, keys...)
}

// hasQuota lets the namespace of the Jobs have so many Pods.
func (h *hall) hasQuota(pods string) {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "q"}}
	q.Status.Hard = placementtest.Quantities("pods", pods)
	h.store.Quotas.Set(q)
	h.store.Quotas.Know(true)
}

// asks has a Job ask for room that runs so many Pods at once, each on a CPU.
func (h *hall) asks(t *testing.T, name string, pods int32) Answer {
	job := mirrortest.New(name).Completions(pods).Parallelism(pods).Obj()
	job.UID = types.UID(name)
	job.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	h.jobs[keyOf(job)] = job
	return h.Ask(t.Context(), Question{Request: placement.Request{Job: job}})
}

// What a Job that would go back lacks comes while the worker is reserved: it's looked at when that
// is over.
func TestReturnsToWhatCameUnderAReservation(t *testing.T) {
	h := newHall()
	if small := h.asks(t, "small", 1); small.Cluster != "a" {
		t.Fatalf("%+v", small)
	}
	h.asks(t, "wide", 8)
	h.walk()
	wide := keyOf(h.jobs[types.NamespacedName{Namespace: "team", Name: "wide"}])
	if h.Reservations()["a"] == nil {
		t.Fatal("there is no reservation")
	}
	away := &entry{Job: waiting.Job{
		Key: types.NamespacedName{Namespace: "team", Name: "away"}, Pods: 1, Shape: h.waiters[wide].Shape,
		Needs: needs("a", waiting.Need{Lacks: waiting.Other, HelpedBy: placement.AdmissionChange}),
	}}
	h.returning[away.Key] = away
	h.Changed("a", placement.Change{Kinds: placement.AdmissionChange})
	h.walk()
	if !h.AwaitsReturn(away.Key) {
		t.Error("it's looked at under the reservation")
	}
	h.Withdraw(wide)
	h.walk()
	if h.AwaitsReturn(away.Key) || !slices.Contains(h.enqueued, away.Key) {
		t.Error("it isn't looked at when the reservation has gone")
	}
}

// Very many Jobs that would go back, each of another shape, take too long to be looked at together.
// The others are looked at later, though nothing changes any more.
func TestEveryJobThatWouldGoBackIsLookedAt(t *testing.T) {
	h := newHall()
	for i := range 999 {
		h.store.Ledger.SetNode(placementtest.NewNode(fmt.Sprint("full-", i)).Has("cpu", "0", "pods", "110").Obj())
	}
	const jobs = 3000
	for i := range jobs {
		requests := placementtest.Quantities("cpu", fmt.Sprintf("%dm", 1000+i))
		shape := placement.ShapeOf(&corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}}}})
		key := types.NamespacedName{Namespace: "team", Name: fmt.Sprint("job-", i)}
		h.returning[key] = &entry{Job: waiting.Job{Key: key, Pods: 1, Shape: shape, Needs: needs("a", waiting.Need{Pods: 1})}}
	}
	h.Changed("a", placement.Change{Kinds: placement.RoomChange})
	h.walk()
	times := 0
	for ; len(h.returning) > 0 && h.wakes && times < 10; times++ {
		if len(h.enqueued) == jobs {
			t.Fatal("all are looked at together")
		}
		h.wakeUnlooked() // as the clock does
	}
	if len(h.enqueued) != jobs || h.wakes || times == 0 {
		t.Errorf("%d Jobs are looked at after %d more times; more: %v", len(h.enqueued), times, h.wakes)
	}
}

// Room for one of very many Jobs of one shape has some of them reconciled at a time, and delays no
// other namespace's.
func TestSomeJobsThatWouldGoBackAreWokenAtATime(t *testing.T) {
	h := newHall()
	shape := placement.ShapeOf(&corev1.PodTemplateSpec{})
	wouldReturn := func(namespace, name string) {
		key := types.NamespacedName{Namespace: namespace, Name: name}
		h.returning[key] = &entry{Job: waiting.Job{Key: key, Pods: 1, Shape: shape, Needs: needs("a", waiting.Need{Pods: 1})}}
	}
	const jobs, most = 5000, 1001
	for i := range jobs {
		wouldReturn("many", fmt.Sprint("job-", i))
	}
	wouldReturn("other", "job")
	h.Changed("a", placement.Change{Kinds: placement.RoomChange})
	h.walk()
	others := slices.DeleteFunc(slices.Clone(h.enqueued), func(key types.NamespacedName) bool { return key.Namespace == "many" })
	if many := len(h.enqueued) - len(others); many == 0 || many > most || len(others) != 1 {
		t.Errorf("%d Jobs of the one namespace are woken at once, %d of the other", many, len(others))
	}
	for range jobs {
		if len(h.returning) == 0 {
			break
		}
		h.wakeUnlooked() // as the clock does
	}
	if len(h.enqueued) != jobs+1 || h.wakes {
		t.Errorf("%d Jobs are woken in the end; more: %v", len(h.enqueued), h.wakes)
	}
}

// Nothing is remembered of a worker that was removed.
func TestRemovedWorkerIsForgotten(t *testing.T) {
	h := newHall()
	h.Fill(t.Context(), "a")
	if !h.isFilled(h) {
		t.Fatal("its ledger isn't filled")
	}
	h.ForgetWorker("a")
	if h.isFilled(h) {
		t.Error("its ledger is remembered")
	}
}
