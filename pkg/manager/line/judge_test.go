package line

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/line/stockout"
	"github.com/jobferry/jobferry/pkg/manager/line/waiting"
	"github.com/jobferry/jobferry/pkg/mirror/mirrortest"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/placement/placementtest"
)

// spy is a selector that does something while a Job is judged, and selects all.
type spy struct {
	labels.Selector
	do func()
}

func (s spy) Matches(labels.Labels) bool {
	s.do()
	return true
}

func while(do func()) labels.Selector { return spy{labels.Everything(), do} }

// large makes a Job of so many Pods that takes much work: it names many nodes.
func (h *hall) large(name string, pods int32) *batchv1.Job {
	job := mirrortest.New(name).Completions(pods).Parallelism(pods).Obj()
	job.UID = types.UID(name)
	job.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	terms := []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
		{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"node"}},
	}}}
	for i := range 100 {
		terms = append(terms, placementtest.NodeTerm(corev1.LabelHostname, corev1.NodeSelectorOpIn, fmt.Sprint("none-", i)))
	}
	job.Spec.Template.Spec.Affinity = placementtest.NodeAffinity(terms...)
	h.jobs[keyOf(job)] = job
	return job
}

// A walk unpacks no large Job, whatever it has much of.
func TestWalksLeaveLargeJobsAlone(t *testing.T) {
	for name, row := range map[string]struct {
		labels int
		large  bool
	}{"plain": {10, false}, "many labels": {10_000, true}} {
		t.Run(name, func(t *testing.T) {
			h := newHall()
			job := mirrortest.New("job").Completions(1).Parallelism(1).Obj()
			job.Labels = map[string]string{}
			for i := range row.labels {
				job.Labels[fmt.Sprint("label-", i)] = "x"
			}
			if w := h.newEntry(Question{Request: placement.Request{Job: job}}); w.heavy != row.large || w.large != row.large {
				t.Errorf("heavy: %v, large: %v", w.heavy, w.large)
			}
		})
	}
}

// A look at a Job that is placed takes nothing from others.
func TestAReservationThatStaysTakesNothing(t *testing.T) {
	h := newHall()
	h.asks(t, "job", 1)
	w, _ := h.workers.Worker("a")
	job := h.jobs[types.NamespacedName{Namespace: "team", Name: "job"}]
	shape := placement.ShapeOf(&job.Spec.Template)
	h.holdLocked(w, job, shape)
	before := h.taken["a"]
	h.holdLocked(w, job, shape)
	if h.taken["a"] != before || before == 0 {
		t.Errorf("taken %d times, and then %d", before, h.taken["a"])
	}
}

// A Job that takes much work is judged without the lock: others are placed meanwhile. It goes only
// if what it was judged by is still there.
func TestLargeJobsAreJudgedWithoutTheLock(t *testing.T) {
	for name, row := range map[string]struct {
		pods int32
		want string
	}{
		"what was taken leaves enough": {7, "a"},
		"what was taken was needed":    {8, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHall()
			var other Answer
			answer := h.Ask(t.Context(), Question{Request: placement.Request{Job: h.large("large", row.pods), Selector: while(func() {
				if other.Cluster == "" {
					other = h.asks(t, "other", 1)
				}
			})}})
			if other.Cluster != "a" || answer.Cluster != row.want {
				t.Fatalf("the other went to %q, the large one to %q", other.Cluster, answer.Cluster)
			}
			if waits := h.order.Get(types.NamespacedName{Namespace: "team", Name: "large"}) != nil; waits == (row.want != "") {
				t.Errorf("it waits: %v", waits)
			}
		})
	}
}

// What Jobs may use up beside nodes while a Job is judged is compared, too: the quotas of its
// namespace, the worker's number of mirrors, and the one try of a shape that was out there.
func TestWhatOthersUseUpWhileALargeJobIsJudged(t *testing.T) {
	small := func(name string) *batchv1.Job {
		job := mirrortest.New(name).Completions(1).Parallelism(1).Obj()
		job.UID = types.UID(name)
		job.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		return job
	}
	for name, row := range map[string]struct {
		pods      int32
		before    func(*hall)
		meanwhile func(*hall)
		want      string
	}{
		"the quota leaves enough": {3, func(h *hall) { h.hasQuota("4") }, func(*hall) {}, "a"},
		"the quota is used up":    {4, func(h *hall) { h.hasQuota("4") }, func(*hall) {}, ""},
		"the worker is full":      {1, func(*hall) {}, func(h *hall) { h.full = true }, ""},
		"the other one tries": {1, func(h *hall) {
			out := v1alpha1.Stockout{Shape: stockout.Fingerprint(small("failed")), Namespace: "team", Failures: 1}
			out.Until.Time = h.clock.Now().Add(-time.Second)
			h.RestoreStockouts("a", []v1alpha1.Stockout{out})
		}, func(*hall) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHall()
			row.before(h)
			var other Answer
			job := small("large")
			job.Spec.Completions, job.Spec.Parallelism = &row.pods, &row.pods
			job.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LARGE", Value: strings.Repeat("x", maxInLine)}}
			question := Question{Request: placement.Request{Job: job, Selector: while(func() {
				if other.Cluster == "" {
					other = h.asks(t, "other", 1)
					row.meanwhile(h)
				}
			})}}
			if answer := h.Ask(t.Context(), question); other.Cluster != "a" || answer.Cluster != row.want {
				t.Errorf("the other went to %q, the large one to %q", other.Cluster, answer.Cluster)
			}
		})
	}
}

// A namespace has one of its Jobs judged at a time of those that take much work: it takes one core
// at most, and no reconcile waits for that.
func TestLargeJobsOfANamespaceTakeTurns(t *testing.T) {
	h := newHall()
	var second, elsewhere Answer
	h.Ask(t.Context(), Question{Request: placement.Request{Job: h.large("first", 1), Selector: while(func() {
		second = h.Ask(t.Context(), Question{Request: placement.Request{Job: h.large("second", 1)}})
		job := h.large("elsewhere", 1)
		job.Namespace = "others"
		elsewhere = h.Ask(t.Context(), Question{Request: placement.Request{Job: job}})
	})}})
	if second.Cluster != "" || second.IsTurn || elsewhere.Cluster != "a" {
		t.Fatalf("second: %+v, elsewhere: %+v", second, elsewhere)
	}
	key := types.NamespacedName{Namespace: "team", Name: "second"}
	if slices.Contains(h.enqueued, key) {
		t.Error("the second is enqueued before the first has ended its turn")
	}
	h.Settle(types.NamespacedName{Namespace: "team", Name: "first"}, true)
	if !slices.Contains(h.enqueued, key) {
		t.Fatal("the second isn't enqueued")
	}
	if second = h.Ask(t.Context(), Question{Request: placement.Request{Job: h.jobs[key]}}); second.Cluster != "a" {
		t.Errorf("%+v", second)
	}
	h.Settle(key, true)
	h.Settle(types.NamespacedName{Namespace: "others", Name: "elsewhere"}, true)
	if len(h.turns) > 0 {
		t.Errorf("turns are left: %v", h.turns)
	}
}

// A Job that takes much work in a worker with many nodes is left by the walk to its own reconcile.
// It has a reservation as any other, and it's its turn then, also if something has changed since.
func TestAWalkLeavesHeavyJobsToThemselves(t *testing.T) {
	h := newHall()
	for i := range 6000 {
		h.store.Ledger.SetNode(placementtest.NewNode(fmt.Sprint("empty-", i)).Has("cpu", "0", "pods", "110").Obj())
	}
	h.asks(t, "all", 8)
	job := h.large("heavy", 8)
	required := job.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	required.NodeSelectorTerms = required.NodeSelectorTerms[:8]
	h.Ask(t.Context(), Question{Request: placement.Request{Job: job}})
	h.Settle(keyOf(job), true)
	h.asks(t, "later", 1)
	h.walk()
	if w := h.waiters[keyOf(job)]; !w.heavy || w.large || h.Reservations()["a"] == nil || h.Reservations()["a"].Job.Key != keyOf(job) {
		t.Fatalf("heavy: %v, large: %v, needs: %+v, reservation: %+v", w.heavy, w.large, w.Needs, h.Reservations()["a"].Job)
	}
	h.Release("a", types.NamespacedName{Namespace: "team", Name: "all"})
	h.Changed("a", placement.Change{Kinds: placement.AnyChange})
	h.enqueued = nil
	h.walk()
	if w := h.waiters[keyOf(job)]; w.chosen != nil || !slices.Contains(h.enqueued, keyOf(job)) {
		t.Fatalf("chosen: %v, enqueued: %v", w.chosen, h.enqueued)
	}
	h.Changed("a", placement.Change{Kinds: placement.NodesChange})
	if answer := h.Ask(t.Context(), Question{Request: placement.Request{Job: job}}); answer.Cluster != "a" {
		t.Errorf("%+v", answer)
	}
}

// What changes while a Job is judged isn't missed, whether it waits for room or would go back.
func TestWhatChangesWhileALargeJobIsJudged(t *testing.T) {
	h := newHall()
	h.asks(t, "all", 8)
	frees := while(func() {
		h.Release("a", types.NamespacedName{Namespace: "team", Name: "all"})
		h.Changed("a", placement.Change{Kinds: placement.RoomChange})
		h.walk()
	})
	job := h.large("waits", 1)
	if answer := h.Ask(t.Context(), Question{Request: placement.Request{Job: job, Selector: frees}}); answer.Cluster != "" || !slices.Contains(h.enqueued, keyOf(job)) {
		t.Errorf("answer: %+v, enqueued: %v", answer, h.enqueued)
	}
	h.Settle(keyOf(job), true)
	h.Withdraw(keyOf(job))
	h.asks(t, "all", 8)
	job = h.large("goes-back", 1)
	_, state := h.GoBack(t.Context(), Question{Request: placement.Request{Job: job, Selector: frees}}, true)
	if state != AwaitsTurn || !slices.Contains(h.enqueued, keyOf(job)) {
		t.Errorf("state: %v, enqueued: %v", state, h.enqueued)
	}
}

// A Job whose comparisons with nodes take much work.
func (h *hall) dear(nodes int) *entry {
	for i := range nodes {
		h.store.Ledger.SetNode(placementtest.NewNode(fmt.Sprint("n", i)).Has("cpu", "8", "pods", "110").Obj())
	}
	values := make([]string, 80)
	for i := range values {
		values[i] = fmt.Sprint("value-", i)
	}
	job := mirrortest.New("dear").Obj()
	job.Spec.Template.Spec.Affinity = placementtest.NodeAffinity(placementtest.NodeTerm(corev1.LabelHostname, corev1.NodeSelectorOpIn, values...))
	return h.newEntry(Question{Request: placement.Request{Job: job}})
}

// needs are what a Job lacks in one worker.
func needs(worker string, need waiting.Need) (n waiting.Needs) {
	n.Set(worker, need)
	return n
}

func needIn(w *entry, worker string) waiting.Need {
	need, _ := w.Needs.Get(worker)
	return need
}

// What a Job lacks is found out by a number of comparisons, in all workers together. Where these
// are used up, it's taken for what others have.
func TestWhatAJobLacksIsFoundOutInFewComparisons(t *testing.T) {
	h := newHall()
	const nodes = 1000
	w := h.dear(nodes)
	few := maxNeedWork / ((nodes + 1) * w.Shape.WorkOn(&corev1.Node{}))
	for workers, want := range map[int]waiting.Lack{few: waiting.Nodes, few + 1: waiting.Room} {
		rejections := slices.Repeat([]placement.Rejection{{Cluster: "a", Reason: placement.Insufficient, Needed: 1}}, workers)
		if h.setNeeds(w, placement.Decision{Rejections: rejections}); w.large || needIn(w, "a").Lacks != want {
			t.Errorf("in worker %d: %+v, want %v", workers, needIn(w, "a"), want)
		}
	}
}

// To find out what a Job lacks takes a part of what the Jobs of its namespace have in a walk.
func TestWhatAJobLacksCountsInAWalk(t *testing.T) {
	h := newHall()
	const nodes = 1000
	dear := h.dear(nodes)
	all := maxNeedWork / ((nodes + 1) * dear.Shape.WorkOn(&corev1.Node{}))
	for workers, want := range map[int]int{0: 1, all/2 + 1: 1 + maxInVain/2, 2 * all: 1 + maxInVain} {
		w := *dear
		rejections := slices.Repeat([]placement.Rejection{{Cluster: "a", Reason: placement.Insufficient, Needed: 1}}, workers)
		if h.setNeeds(&w, placement.Decision{Rejections: rejections}); w.tries != want {
			t.Errorf("in %d workers: it counts for %d Jobs, want %d", workers, w.tries, want)
		}
	}
}

// Whether what a Job needs was taken while it was judged without the lock is found out likewise. In
// workers where comparisons are used up, it's there.
func TestWhatWasTakenIsFoundOutInFewComparisons(t *testing.T) {
	h := newHall()
	const nodes = 1000
	w := h.dear(nodes)
	enough := func(string) int64 { return waiting.Unlimited }
	few, left := maxNeedWork/((nodes+1)*w.Shape.WorkOn(&corev1.Node{})), maxNeedWork
	for i := range few + 2 {
		if is := h.isTooLittle(w, &placement.Candidate{Cluster: "a", Needed: 1}, enough, &left); is != (i <= few-1) {
			t.Errorf("candidate %d of %d: too little: %v", i, few, is)
		}
	}
}

// Nodes that may be added are made up only where those that there are don't suffice, and count as
// many comparisons: for a Job that lacks room in very many workers, they are in few.
func TestNodesThatMayBeAddedAreMadeUpInFewWorkers(t *testing.T) {
	h := newHall()
	h.autoscaling = &v1alpha1.Autoscaling{NodeTemplates: []v1alpha1.NodeTemplate{
		{Name: "new", MaxNodes: 1000, Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourcePods: resource.MustParse("110")}},
	}}
	w := h.newEntry(Question{Request: placement.Request{Job: mirrortest.New("j").Obj()}})
	const madeUp = 500
	for needed, most := range map[int64]int{1: 0, 1_000_000: maxNeedWork/(madeUp*waiting.LooksPerAdded) + 1} {
		h.asked = 0
		rejections := slices.Repeat([]placement.Rejection{{Cluster: "a", Reason: placement.Insufficient, Needed: needed}}, 100)
		if h.setNeeds(w, placement.Decision{Rejections: rejections}); h.asked > most {
			t.Errorf("%d Pods: made up in %d workers, want %d", needed, h.asked, most)
		}
		if needed > 1 && h.asked < most {
			t.Errorf("made up in %d workers: this shows nothing", h.asked)
		}
	}
}
