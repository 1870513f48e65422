package podtimes

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/usage"
)

const theJob types.UID = "job"

var began = time.Unix(1_000_000, 0)

// story is a Store with a hub's clock.
type story struct {
	*Store
	t     *testing.T
	now   time.Time
	ahead time.Duration
}

func newStory(t *testing.T) *story {
	s := &story{t: t, now: began}
	s.Store = New(func() time.Time { return s.now }, func() time.Duration { return s.ahead })
	return s
}

// pass lets some time go by, in which both watches tell something.
func (s *story) pass(d time.Duration) {
	s.now = s.now.Add(d)
	s.Running().Heard()
	s.Ended().Heard()
}

// running is a Pod that got its node at some time.
func running(uid types.UID, at time.Time) *corev1.Pod {
	p := &corev1.Pod{}
	p.UID, p.Name = uid, string(uid)
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", UID: theJob, Controller: ptr.To(true)}}
	p.Spec.NodeName, p.Status.Phase = "node", corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)}}
	return p
}

// over is a Pod that has ended.
func over(p *corev1.Pod, at time.Time, phase corev1.PodPhase) *corev1.Pod {
	p = p.DeepCopy()
	p.Status.Phase = phase
	p.Status.ContainerStatuses = []corev1.ContainerStatus{
		{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(at)}}},
		{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(at.Add(-time.Second))}}},
	}
	return Slim(Slim(p))
}

func (s *story) expect(want usage.Times) {
	s.t.Helper()
	got := s.Times(theJob)
	if want.Since.IsZero() {
		got.Since = time.Time{}
	}
	if want.Count == 0 {
		got.Count = 0 // the row isn't about it
	}
	want.Ahead, want.Newest = s.ahead, got.Newest
	if got != want {
		s.t.Errorf("times are %+v, want %+v", got, want)
	}
}

func TestAPodRunsAndEnds(t *testing.T) {
	s := newStory(t)
	p := running("p", began)
	s.Running().Set(p)
	s.expect(usage.Times{Running: 1, Since: began})
	s.pass(time.Minute)
	s.Running().Remove("p")
	s.pass(time.Second)
	s.expect(usage.Times{Running: 1, Since: began.Add(time.Second)}) // for a minute, until the other watch says how
	s.Ended().Set(over(p, began.Add(50*time.Second), corev1.PodSucceeded))
	s.expect(usage.Times{Ended: 50 * time.Second, Succeeded: 50 * time.Second})
	s.Ended().Remove("p")
	s.expect(usage.Times{Ended: 50 * time.Second, Succeeded: 50 * time.Second})
	s.pass(settleAfter)
	if s.Times(theJob); len(s.pods) != 0 {
		t.Errorf("%d Pods are held", len(s.pods))
	}
}

// The watch of Pods that ended is first.
func TestTheOtherOrder(t *testing.T) {
	s := newStory(t)
	p := running("p", began)
	s.Running().Set(p)
	s.pass(time.Minute)
	s.Ended().Set(over(p, began.Add(50*time.Second), corev1.PodFailed))
	s.Running().Set(p)
	s.Running().Remove("p")
	s.pass(time.Hour)
	s.expect(usage.Times{Ended: 50 * time.Second})
}

// One watch tells nothing for longer than it takes to settle a Pod: half of its connection is gone. Then it begins anew.
func TestAWatchThatIsBehindCountsNothingTwice(t *testing.T) {
	p := running("p", began)
	end := over(p, began.Add(50*time.Second), corev1.PodFailed)
	leaving := p.DeepCopy()
	leaving.DeletionTimestamp = ptr.To(metav1.NewTime(began.Add(time.Hour)))
	for name, row := range map[string]struct{ first, late func(*story) }{
		"of Pods that ended": {
			func(s *story) { s.Running().Set(p); s.pass(time.Minute); s.Running().Remove("p") },
			func(s *story) { s.Ended().Set(end); s.Ended().Heard() },
		},
		"of Pods that ended, and it was deleted": {
			func(s *story) { s.Running().Set(leaving); s.pass(time.Minute); s.Running().Remove("p") },
			func(s *story) { s.Ended().Set(end); s.Ended().Heard() },
		},
		"of Pods that run": {
			func(s *story) { s.Ended().Set(end); s.pass(time.Minute); s.Ended().Remove("p") },
			func(s *story) { s.Running().Set(p); s.Running().Heard(); s.Running().Remove("p") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			row.first(s)
			s.now = s.now.Add(settleAtMost - time.Second)
			s.Times(theJob)
			row.late(s)
			s.Ended().Remove("p")
			s.pass(settleAfter)
			s.expect(usage.Times{Ended: 50 * time.Second, Count: 1})
			if len(s.pods) > 0 {
				t.Errorf("%d Pods are held", len(s.pods))
			}
		})
	}
}

// A watch that never tells anything again doesn't fill the memory.
func TestAWatchThatIsGoneHoldsNothing(t *testing.T) {
	s := newStory(t)
	s.Running().Set(running("p", began))
	s.pass(time.Minute)
	s.Running().Remove("p")
	s.now = s.now.Add(settleAtMost)
	s.expect(usage.Times{Ended: time.Minute})
	if len(s.pods) > 0 {
		t.Errorf("%d Pods are held", len(s.pods))
	}
}

// A Pod that is deleted before it ends counts until it was to be gone, or was seen to be.
func TestAPodVanishes(t *testing.T) {
	for name, row := range map[string]struct {
		grace, gone, want time.Duration
	}{
		"at once":            {30 * time.Second, 2 * time.Second, 12 * time.Second},
		"while out of touch": {30 * time.Second, time.Hour, 40 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			p := running("p", began)
			s.Running().Set(p)
			s.pass(10 * time.Second)
			p = p.DeepCopy()
			p.DeletionTimestamp = ptr.To(metav1.NewTime(s.now.Add(row.grace)))
			s.Running().Set(p)
			s.pass(row.gone)
			s.Running().Remove("p")
			s.expect(usage.Times{Ended: row.want})
			s.pass(settleAfter)
			s.expect(usage.Times{Ended: row.want})
		})
	}
}

// The worker's clock is an hour behind or ahead.
func TestClocksDiffer(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(fmt.Sprint(ahead), func(t *testing.T) {
			s := newStory(t)
			s.ahead = ahead
			s.Running().Set(running("p", began.Add(-ahead)))
			s.pass(time.Minute)
			s.expect(usage.Times{Running: 1, Since: began.Add(-ahead)})
			s.Running().Remove("p")
			s.pass(settleAfter)
			s.expect(usage.Times{Ended: time.Minute})
		})
	}
}

// Times that make no sense count as zero, or as the most that there can be.
func TestLies(t *testing.T) {
	s := newStory(t)
	s.Ended().Set(over(running("backwards", began), began.Add(-time.Hour), corev1.PodFailed))
	s.expect(usage.Times{})
	for i := range 3 {
		s.Ended().Set(over(running(types.UID(fmt.Sprint(i)), time.Unix(0, 0)), time.Unix(1<<40, 0), corev1.PodFailed))
	}
	s.expect(usage.Times{Ended: 3 * maxTime})
}

func TestPodsOfOthersTakeNoMemory(t *testing.T) {
	s := newStory(t)
	p := running("p", began)
	p.OwnerReferences[0].Kind = "ReplicaSet"
	s.Running().Set(p)
	s.Ended().Set(over(p, began, corev1.PodFailed))
	if len(s.pods)+len(s.jobs) != 0 {
		t.Error("it is held")
	}
	s.Running().Set(&corev1.Pod{ObjectMeta: running("q", began).ObjectMeta}) // no node
	if len(s.pods) != 0 {
		t.Error("a Pod without a node is held")
	}
}

func TestJobsThatAreGoneAreBounded(t *testing.T) {
	s := newStory(t)
	for i := range maxGone + 10 {
		p := running(types.UID(fmt.Sprint(i)), began)
		p.OwnerReferences[0].UID = types.UID(fmt.Sprint("job", i))
		s.Running().Set(p)
		s.Running().Remove(p.UID)
	}
	s.pass(settleAfter)
	s.Times("any")
	if len(s.jobs) != maxGone || len(s.gone) != maxGone || len(s.pods) != 0 {
		t.Errorf("%d Jobs, %d gone, %d Pods", len(s.jobs), len(s.gone), len(s.pods))
	}
}

// TestAWorkerThatMakesUpPods sends as many as it likes, in each way in which it can.
func TestAWorkerThatMakesUpPods(t *testing.T) {
	pod := func(i int) *corev1.Pod { return running(types.UID(fmt.Sprint("p", i)), began) }
	long := types.UID(strings.Repeat("x", maxUID+1))
	for name, row := range map[string]struct {
		times int
		send  func(*Store, int)
		most  int
	}{
		"with long UIDs": {10, func(s *Store, i int) {
			s.Running().Set(running(types.UID(fmt.Sprint(long, i)), began))
		}, 0},
		"of Jobs with long UIDs": {10, func(s *Store, i int) {
			p := pod(i)
			p.OwnerReferences[0].UID = long
			s.Ended().Set(over(p, began, corev1.PodFailed))
		}, 0},
		"that go at once": {maxPods + 1000, func(s *Store, i int) {
			s.Running().Set(pod(i))
			s.Running().Remove(pod(i).UID)
		}, maxPods},
		"that are there twice": {maxPods + 1000, func(s *Store, i int) {
			s.Ended().Set(over(pod(i), began, corev1.PodFailed))
			if i%2 == 0 {
				s.Running().Set(pod(i))
			}
		}, maxPods},
		"one that comes and goes": {1000, func(s *Store, _ int) {
			s.Running().Set(pod(1))
			s.Running().Remove("p1")
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			for i := range row.times {
				row.send(s.Store, i)
			}
			if len(s.pods) > row.most || len(s.unsettled) > row.most || len(s.jobs) > 1 {
				t.Errorf("%d Pods, %d unsettled, %d Jobs; want up to %d", len(s.pods), len(s.unsettled), len(s.jobs), row.most)
			}
		})
	}
}

// A Pod that is settled early counts like any other.
func TestPodsAreSettledEarly(t *testing.T) {
	s := newStory(t)
	first := running("first", began)
	s.Running().Set(first)
	s.pass(time.Minute)
	s.Running().Remove("first")
	for i := range maxPods {
		s.Running().Set(running(types.UID(fmt.Sprint(i)), s.now))
	}
	got := s.Times(theJob)
	if got.Ended != time.Minute || got.Running != maxPods {
		t.Errorf("times are %+v", got)
	}
}

// Whatever the order of the two watches, and however often they list again, each Pod counts once.
func TestEachPodCountsOnce(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test's choice
		s, want := newStory(t), usage.Times{Count: 20}
		for i := range 20 {
			p := running(types.UID(fmt.Sprint(i)), began.Add(time.Duration(random.IntN(9))*time.Second))
			ran := time.Duration(random.IntN(100)) * time.Second
			end := over(p, Start(p).Add(ran), corev1.PodSucceeded)
			want.Ended, want.Succeeded = want.Ended+ran, want.Succeeded+ran
			events := []func(){
				func() { s.Running().Set(p); s.Running().Remove(p.UID) },
				func() { s.Ended().Set(end); s.Ended().Set(end) },
			}
			random.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
			for _, event := range events {
				event()
				s.pass(time.Duration(random.IntN(10)) * time.Second)
			}
			if random.IntN(2) == 0 {
				s.Ended().Remove(p.UID)
			}
		}
		s.pass(settleAfter)
		s.expect(want)
	}
}

// The times of some time past are those that a Store had then, if all Pods are still there.
func TestTimesAt(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // a test's choice
		s := newStory(t)
		s.ahead = time.Hour
		ends := map[*corev1.Pod]time.Duration{}
		for i := range 20 {
			start := time.Duration(random.IntN(50)) * time.Second
			ends[running(types.UID(fmt.Sprint(i)), began.Add(start-s.ahead))] = start + time.Duration(random.IntN(60))*time.Second
		}
		was := map[time.Duration]usage.Times{}
		for now := time.Duration(0); now <= 2*time.Minute; now += time.Second {
			for p, end := range ends {
				switch there := began.Add(now - s.ahead); {
				case end == now && !Start(p).After(there):
					s.Ended().Set(over(p, there, corev1.PodSucceeded))
					s.Running().Remove(p.UID)
				case end > now && Start(p).Equal(there):
					s.Running().Set(p)
				}
			}
			was[now] = s.Times(theJob)
			s.pass(time.Second)
		}
		for now, want := range was {
			at := began.Add(now - s.ahead)
			got := s.TimesThen(theJob, usage.Then{At: at, Newest: want.Newest})
			ran := func(t usage.Times) time.Duration { return t.Ended + time.Duration(t.Running)*at.Sub(t.Since) }
			if d := ran(got) - ran(want); d.Abs() > time.Millisecond || got.Succeeded != want.Succeeded || got.Count != want.Count {
				t.Fatalf("seed %d, %v: times are %+v, were %+v", seed, now, got, want)
			}
		}
	}
}

// Those that are compared with an account are the Pods that it counted, also if the worker's clock was set.
func TestThenIsByThePodsOwnTimes(t *testing.T) {
	s := newStory(t)
	for i := range 4 {
		p := running(types.UID(fmt.Sprint(i)), began.Add(time.Duration(i)*time.Minute))
		s.Ended().Set(over(p, Start(p).Add(time.Second), corev1.PodSucceeded))
	}
	for _, set := range []time.Duration{-time.Hour, 0, time.Hour} {
		at := began.Add(2*time.Minute + time.Second)
		if got := s.TimesThen(theJob, usage.Then{At: at.Add(set), Newest: at.Add(-time.Second)}); got.Count+got.Running != 3 {
			t.Errorf("%v: times are %+v, want those of 3 Pods", set, got)
		}
	}
}

// What is listed after all was forgotten is another view, and before that there is none.
func TestViews(t *testing.T) {
	s, other := newStory(t), newStory(t)
	s.Running().Set(running("p", began))
	s.expect(usage.Times{Running: 1})
	seen := map[int64]bool{0: true}
	for _, store := range []*Store{s.Store, other.Store, s.Store} {
		store.Listed()
		store.Listed()
		view := store.Times(theJob).View
		if seen[view] || store.TimesThen(theJob, usage.Then{}).View != view {
			t.Errorf("view %d, seen %v", view, seen)
		}
		seen[view] = true
		store.Forget()
		if got := store.Times(theJob); got != (usage.Times{}) {
			t.Errorf("times are %+v, and all is forgotten", got)
		}
	}
}
