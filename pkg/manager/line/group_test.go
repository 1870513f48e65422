package line

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/jobferry/jobferry/pkg/manager/group"
	"github.com/jobferry/jobferry/pkg/mirror/mirrortest"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/placement/placementtest"
)

// A JobSet that nobody runs may say that it has very many Jobs, whose Pods may name very many
// nodes: room is held for some of them, and for none that wasn't judged.
func TestRoomIsHeldForSomeJobsOfALargeGroup(t *testing.T) {
	const nodes = 1000
	values := make([]string, 450)
	for i := range values {
		values[i] = fmt.Sprint("value-", i)
	}
	dear := placementtest.NodeAffinity(placementtest.NodeTerm(corev1.LabelHostname, corev1.NodeSelectorOpNotIn, values...))
	for name, row := range map[string]struct {
		kinds, each int
		affinity    *corev1.Affinity
		held        int
	}{
		"few":                {2, 3, nil, 6},
		"very many":          {1, 10_000, nil, maxHeldWork / nodes},
		"that name nodes":    {1, 10_000, dear, maxHeldWork / nodes / (1 + (2*16+len(values))/16)},
		"of very many kinds": {40, 1, nil, placement.MaxMates},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHall()
			for i := range nodes - 1 {
				h.store.Ledger.SetNode(placementtest.NewNode(fmt.Sprint("n", i)).Has("cpu", "8", "pods", "110").Obj())
			}
			id := group.ID{Namespace: "ns", Name: "large"}
			q := &Question{Request: placement.Request{Job: mirrortest.New("first").Obj()}, Group: id}
			for kind := range row.kinds {
				kin := group.Kin{Job: mirrortest.New(fmt.Sprint("kind-", kind)).Obj()}
				kin.Job.Spec.Template.Spec.Affinity = row.affinity
				for i := range row.each {
					kin.Keys = append(kin.Keys, types.NamespacedName{Namespace: "ns", Name: fmt.Sprint("job-", kind, "-", i)})
				}
				q.Kin = append(q.Kin, kin)
				q.Mates = append(q.Mates, placement.Mate{Job: kin.Job})
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.groupChosenLocked(q, h, h.newEntry(*q)); len(h.held[id]) != row.held {
				t.Errorf("room is held for %d Jobs, want %d", len(h.held[id]), row.held)
			}
		})
	}
}

// TestRoomIsHeldForSomeGroupsOfANamespace has a tenant with very many JobSets, whose Jobs ask for
// nothing: a worker has room for them all.
func TestRoomIsHeldForSomeGroupsOfANamespace(t *testing.T) {
	h := newHall()
	h.mu.Lock()
	defer h.mu.Unlock()
	choose := func(namespace string, set int) group.ID {
		id := group.ID{Namespace: namespace, Name: fmt.Sprint("set-", set)}
		kin := group.Kin{Job: mirrortest.New("kin").Obj()}
		for i := range maxHeld {
			kin.Keys = append(kin.Keys, types.NamespacedName{Namespace: namespace, Name: fmt.Sprint("job-", set, "-", i)})
		}
		first := mirrortest.New(fmt.Sprint("first-", set)).Obj()
		request := placement.Request{Job: first, Mates: []placement.Mate{{Job: kin.Job}}}
		q := Question{Request: request, Group: id, Kin: []group.Kin{kin}}
		h.groupChosenLocked(&q, h, h.newEntry(q))
		return id
	}
	ids := []group.ID{}
	held := func(namespace string) (n int) {
		for id, of := range h.held {
			if id.Namespace == namespace {
				n += len(of)
			}
		}
		if n != h.heldIn[namespace] {
			t.Errorf("room is held for %d Jobs, and %d are counted", n, h.heldIn[namespace])
		}
		return n
	}
	for set := range 2 * maxHeldIn / maxHeld {
		ids = append(ids, choose("many", set))
	}
	if n := held("many"); n != maxHeldIn {
		t.Errorf("room is held for %d Jobs of a namespace, want %d", n, maxHeldIn)
	}
	choose("few", 0)
	if n := held("few"); n != maxHeld {
		t.Errorf("room is held for %d Jobs of another, want %d", n, maxHeld)
	}
	for _, id := range ids {
		h.dropHeldLocked(id)
	}
	h.forgetHeldLocked(h.Name())
	if n := held("many") + held("few"); n != 0 || len(h.heldIn) != 0 {
		t.Errorf("room for %d Jobs is held yet, %v are counted", n, h.heldIn)
	}
	h.unlimited = true // there are no nodes to count in
	if choose("many", 0); held("many") != 0 {
		t.Error("room is held in a worker whose nodes aren't known")
	}
}

// Each Job of a group takes the room that was held for it: then nothing is kept of the group.
func TestNothingIsKeptOfAGroupThatHasItsRoom(t *testing.T) {
	h := newHall()
	h.mu.Lock()
	defer h.mu.Unlock()
	kin := group.Kin{Job: mirrortest.New("kin").Obj()}
	for i := range 3 {
		kin.Keys = append(kin.Keys, types.NamespacedName{Namespace: "team", Name: fmt.Sprint("job-", i)})
	}
	id, held := group.ID{Namespace: "team", Name: "set"}, 3
	choose := func(job *batchv1.Job, request placement.Request, kin ...group.Kin) {
		request.Job = job
		q := Question{Request: request, Group: id, Kin: kin}
		if h.groupChosenLocked(&q, h, h.newEntry(q)); len(h.held[id]) != held || h.heldIn["team"] != held {
			t.Fatalf("room is held for %d Jobs, and %d are counted, want %d", len(h.held[id]), h.heldIn["team"], held)
		}
		held--
	}
	choose(mirrortest.New("first").Obj(), placement.Request{Mates: []placement.Mate{{Job: kin.Job}}}, kin)
	for _, key := range kin.Keys {
		choose(mirrortest.New(key.Name).Obj(), placement.Request{})
	}
	if len(h.held)+len(h.heldIn) != 0 {
		t.Errorf("kept: %v, %v", h.held, h.heldIn)
	}
}

// A JobSet says that it will have very many Jobs of very many Pods, each of which takes the room of
// very many of the one that asks: what they need stays a number of Pods.
func TestPodsOfAGroupDontOverflow(t *testing.T) {
	tiny, huge := mirrortest.New("tiny").Obj(), mirrortest.New("huge").Obj()
	for job, cpu := range map[*batchv1.Job]string{tiny: "1m", huge: "1000000000"} {
		job.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
	for name, row := range map[string]struct {
		mates []placement.Mate
		want  int64
	}{
		"few":               {[]placement.Mate{{Job: tiny, Pods: 3}}, 4},
		"a product":         {[]placement.Mate{{Job: huge, Pods: 10_000 * math.MaxInt32}}, math.MaxInt32},
		"a sum of products": {slices.Repeat([]placement.Mate{{Job: huge, Pods: math.MaxInt32}}, 4), math.MaxInt32},
	} {
		w := newHall().newEntry(Question{Request: placement.Request{Job: tiny, Mates: row.mates}})
		if w.Pods != row.want {
			t.Errorf("%s: %d Pods, want %d", name, w.Pods, row.want)
		}
	}
}

// Groups of a namespace fit nowhere, and each takes long to find that out, while a worker changes
// again and again: a tenth of the time goes to that. Each has its turn, and that of another
// namespace doesn't wait.
func TestGroupsThatFitNowhereRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall()
		h.Line = New(h, h, NewRuntimes(), clock.RealClock{}, time.Minute)
		const takes, each, all = 50 * time.Millisecond, 5, 20 * time.Second
		asked := map[string]int{}
		ask := func(key types.NamespacedName) {
			began := time.Now()
			if asked[key.Namespace]++; key.Namespace == "many" {
				<-time.After(takes)
			}
			h.asksInGroup(t, key, began)
			h.Settle(key, true)
		}
		h.asks(t, "all", 8)
		for i := range each {
			ask(types.NamespacedName{Namespace: "many", Name: fmt.Sprint("large-", i)})
		}
		ask(types.NamespacedName{Namespace: "few", Name: "small"})
		passes := func(change func()) (last []string) {
			clear(asked)
			for end := time.Now().Add(all); time.Now().Before(end); {
				change()
				<-time.After(10 * time.Millisecond)
				synctest.Wait()
				for _, key := range h.takesEnqueued() {
					if ask(key); key.Namespace == "many" {
						last = append(last, key.Name)
					}
				}
			}
			return last
		}
		most := int(all / ((1 + restTimes) * takes))
		passes(func() { h.Changed("a", moreRoom) })
		if n := asked["many"]; n > most+1 || n < most/2 || asked["few"] < 5*most {
			t.Errorf("asked: %v, want %d of large ones", asked, most)
		}
		h.Changed("a", moreRoom)
		last := passes(func() {})
		slices.Sort(last)
		if n := len(slices.Compact(last)); n != each || len(h.rests) > 0 {
			t.Errorf("%d were asked after the last change, and %d namespaces rest", n, len(h.rests))
		}
	})
}

// takesEnqueued takes what was enqueued until now.
func (h *hall) takesEnqueued() (keys []types.NamespacedName) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	keys, h.enqueued = h.enqueued, nil
	return keys
}

// asksInGroup has a Job ask for its group, which fits nowhere.
func (h *hall) asksInGroup(t *testing.T, key types.NamespacedName, began time.Time) {
	job := mirrortest.New(key.Name).Completions(1000).Parallelism(1000).Obj()
	job.Namespace, job.UID = key.Namespace, types.UID(key.Name)
	job.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	h.Ask(t.Context(), Question{
		Request: placement.Request{Job: job, Mates: []placement.Mate{{Job: job, Pods: 1}}}, Began: began,
		Group: group.ID{Namespace: key.Namespace, Name: key.Name},
		Kin:   []group.Kin{{Job: job, Keys: []types.NamespacedName{{Namespace: key.Namespace, Name: "kin"}}}},
	})
}

// TestTheNextOfANamespaceThatRestsWaitsForADecisionOnly: it's asked once the one before has decided
// and the rest is over, however long the reconcile of that one goes on.
func TestTheNextOfANamespaceThatRestsWaitsForADecisionOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall()
		h.Line = New(h, h, NewRuntimes(), clock.RealClock{}, time.Minute)
		key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "team", Name: name} }
		decides := func(name string) { h.asksInGroup(t, key(name), time.Now().Add(-10*time.Millisecond)) }
		for _, name := range []string{"a", "b", "c"} {
			decides(name)
		}
		asked := func() []types.NamespacedName {
			<-time.After(time.Second)
			synctest.Wait()
			return h.takesEnqueued()
		}
		h.Changed("a", moreRoom)
		first := asked()
		if len(first) != 1 {
			t.Fatalf("%v are asked", first)
		}
		decides(first[0].Name) // its reconcile goes on
		if next := asked(); len(next) != 1 || next[0] == first[0] {
			t.Errorf("%v are asked after %v", next, first)
		}
	})
}
