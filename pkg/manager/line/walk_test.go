package line

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/line/waiting"
	"github.com/jobferry/jobferry/pkg/mirror/mirrortest"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/placement/placementtest"
)

// holder is a Job that holds capacity.
type holder struct {
	key types.NamespacedName
	in  []string
}

func (h *holder) Key() types.NamespacedName      { return h.key }
func (h *holder) ReservedIn() []string           { return h.in }
func (h *holder) SetReservedIn(workers []string) { h.in = workers }

// divides has a Job decide about its shards.
func (h *hall) divides(t *testing.T, name string) shards.Placement {
	t.Helper()
	job := h.jobs[types.NamespacedName{Namespace: "team", Name: name}]
	_, next, judged := h.Divide(t.Context(), &holder{key: keyOf(job)}, &Division{Limit: 2}, Question{Request: placement.Request{Job: job}})
	if !judged {
		t.Fatalf("%s isn't judged", name)
	}
	return next
}

// The others wait for a Job that divides itself only until it has decided, whatever its reconcile
// does besides, and only for a while if that doesn't get there: a worker may be slow to answer it.
func TestOthersWaitForADecisionForABound(t *testing.T) {
	for name, decides := range map[string]bool{"it decides": true, "it's late": false} {
		t.Run(name, func(t *testing.T) {
			h := newHall()
			h.asks(t, "all", 8)
			h.asks(t, "divided", 4)
			h.Withdraw(types.NamespacedName{Namespace: "team", Name: "divided"})
			h.divides(t, "divided")
			h.asks(t, "small", 1)
			h.walk()
			h.Release("a", types.NamespacedName{Namespace: "team", Name: "all"})
			h.Changed("a", moreRoom)
			h.enqueued = nil
			h.walk()
			divided, small := types.NamespacedName{Namespace: "team", Name: "divided"}, types.NamespacedName{Namespace: "team", Name: "small"}
			if h.undecided == nil || !slices.Equal(h.enqueued, []types.NamespacedName{divided}) {
				t.Fatalf("enqueued: %v", h.enqueued)
			}
			if decides {
				if next := h.divides(t, "divided"); len(next.Shards) == 0 {
					t.Fatalf("%+v", next)
				}
			} else {
				h.stopWaiting(h.waiters[divided], h.undecided)
				h.Divide(t.Context(), &holder{key: divided}, &Division{Limit: 0}, Question{Request: placement.Request{Job: h.jobs[divided]}})
			}
			h.walk()
			if w := h.waiters[small]; h.undecided != nil || w.chosen == nil {
				t.Errorf("the others wait for %v", h.undecided)
			}
			h.Changed("a", moreRoom)
			if h.walk(); h.undecided != nil && !decides || len(h.Reservations()) > 0 {
				t.Errorf("the others wait once more for %v, reservations %v", h.undecided, h.Reservations())
			}
			if decides {
				return
			}
			h.waiters[divided].lateAt = h.waiters[divided].lateAt.Add(-2 * lateFor)
			h.asks(t, "smaller", 1)
			h.Changed("a", moreRoom)
			if h.walk(); h.undecided == nil {
				t.Error("the others never wait again for one that was late once")
			}
		})
	}
}

// decidesInVain has a Job decide for itself that it goes to no worker.
func (h *hall) decidesInVain(t *testing.T, key types.NamespacedName) {
	t.Helper()
	h.Divide(t.Context(), &holder{key: key}, &Division{Limit: 0}, Question{Request: placement.Request{Job: h.jobs[key]}})
}

// behindDivided has a Job of another namespace wait behind some that divide themselves in vain and
// a plain one, and then has all CPUs be free.
func (h *hall) behindDivided(t *testing.T, divided int, plainPods int32) (plain, other *entry) {
	t.Helper()
	h.asks(t, "all", 8)
	for i := range divided {
		key := types.NamespacedName{Namespace: "team", Name: fmt.Sprint("divided-", i)}
		h.asks(t, key.Name, 4)
		h.Withdraw(key)
		h.decidesInVain(t, key)
	}
	h.asks(t, "plain", plainPods)
	job := mirrortest.New("other").Obj()
	job.Namespace = "zebra" // so that it's behind them
	job.Spec.Template.Spec.Containers[0].Resources.Requests = placementtest.Quantities("cpu", "1")
	h.jobs[keyOf(job)] = job
	h.Ask(t.Context(), Question{Request: placement.Request{Job: job}})
	h.walk()
	h.Release("a", types.NamespacedName{Namespace: "team", Name: "all"})
	h.Changed("a", moreRoom)
	return h.waiters[types.NamespacedName{Namespace: "team", Name: "plain"}], h.waiters[keyOf(job)]
}

// Jobs of a namespace that divide themselves, and fit nowhere, have the others wait for one
// decision in a round. Each is asked all the same, in one of the next rounds.
func TestOneDecisionOfANamespaceIsAwaitedInARound(t *testing.T) {
	const divided = 5
	h := newHall()
	_, other := h.behindDivided(t, divided, 1)
	asked := map[types.NamespacedName]int{}
	for walks := 0; walks < 20; walks++ {
		if h.walk(); h.undecided == nil {
			if other.chosen == nil {
				t.Errorf("after %v, a Job of another namespace isn't looked at", asked)
			}
			continue
		}
		asked[*h.undecided]++
		if h.decidesInVain(t, *h.undecided); len(asked) > 1 && other.chosen == nil {
			t.Errorf("a Job of another namespace waits for the decisions %v", asked)
		}
	}
	if len(asked) != divided {
		t.Errorf("asked: %v", asked)
	}
}

// Only Jobs that decide for themselves are put off in a round in which one of their namespace has
// had the others wait: a plain Job keeps its place.
func TestAPlainJobBehindDecisionsKeepsItsPlace(t *testing.T) {
	h := newHall()
	plain, other := h.behindDivided(t, 5, 8)
	if h.walk(); h.undecided == nil {
		t.Fatal("no decision is awaited")
	}
	h.decidesInVain(t, *h.undecided)
	if h.walk(); plain.chosen == nil || other.chosen != nil {
		t.Errorf("it goes: %v, one behind it: %v", plain.chosen != nil, other.chosen != nil)
	}
}

// Very many Jobs of a namespace that take much work have their turns in the order of the line.
func TestTurnsAreInOrder(t *testing.T) {
	h := newHall()
	job := func(i int) *waiting.Job {
		return &waiting.Job{Key: types.NamespacedName{Namespace: "team", Name: fmt.Sprintf("job-%05d", i)}}
	}
	const jobs = 10_000
	for i := range jobs {
		if first := h.hasTurnLocked(job(i * 7919 % jobs)); first != (i == 0) {
			t.Fatalf("%d has its turn: %v", i, first)
		}
	}
	h.enqueued = nil
	for of := h.turns["team"]; h.turns["team"] != nil; {
		h.passTurnLocked(of.of)
	}
	if !slices.IsSortedFunc(h.enqueued, func(a, b types.NamespacedName) int { return slices.Compare([]byte(a.Name), []byte(b.Name)) }) || len(h.enqueued) != jobs-1 {
		t.Errorf("%d turns, not in order", len(h.enqueued))
	}
}

// What has a Job passed over by workers is kept once, with what is known of the Job: very many Jobs
// may wait that each worker has refused. A walk goes by what is known then, and by the rest.
func TestWhatPassesAJobOverIsKeptOnce(t *testing.T) {
	for name, row := range map[string]struct {
		known, besides map[string]string
		then           map[string]string
		chosen         bool
	}{
		"still known": {known: map[string]string{"a": "refused it", "b": "refused it"}, then: map[string]string{"a": "refused it"}},
		"over":        {known: map[string]string{"a": "refused it"}, chosen: true},
		"it leaves a": {known: map[string]string{"b": "refused it"}, besides: map[string]string{"a": "is drained"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHall()
			job := mirrortest.New("waits").Completions(1).Parallelism(1).Obj()
			key := keyOf(job)
			h.jobs[key], h.passedOver = job, row.known
			passedOver := maps.Clone(row.known)
			maps.Copy(passedOver, row.besides)
			if answer := h.Ask(t.Context(), Question{Request: placement.Request{Job: job, PassedOver: passedOver}}); answer.Cluster != "" {
				t.Fatalf("it's placed on %q", answer.Cluster)
			}
			w := h.waiters[key]
			if held := w.request.PassedOver; !maps.Equal(held, row.besides) {
				t.Errorf("%v is held", held)
			}
			h.passedOver = map[string]string{}
			maps.Copy(h.passedOver, row.then)
			h.WorkerChanged("a")
			h.walk()
			if chosen := h.waiters[key] != nil && h.waiters[key].chosen != nil; chosen != row.chosen {
				t.Errorf("it's chosen for: %v", chosen)
			}
		})
	}
}
