package podtimes

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/manager/usage"
	"github.com/jobferry/jobferry/pkg/util/objectnames"
)

var theJob = objectnames.ID{UID: "job"}

var began = time.Unix(1_000_000, 0)

// story is a Store with a hub's clock.
type story struct {
	*Store
	t     *testing.T
	now   time.Time
	ahead time.Duration
	// seen are mirrors.
	seen map[types.NamespacedName]bool
}

func newStory(t *testing.T) *story {
	s := &story{t: t, now: began}
	isSeen := func(key types.NamespacedName) bool { return s.seen[key] }
	s.Store = New("hub-a", func() time.Time { return s.now }, func() time.Duration { return s.ahead }, isSeen)
	return s
}

// pass lets some time go by, until the watch tells something.
func (s *story) pass(d time.Duration) {
	s.now = s.now.Add(d)
	s.Heard()
}

// running is a Pod that got its node at some time.
func running(uid types.UID, at time.Time) *corev1.Pod {
	p := &corev1.Pod{}
	p.UID, p.Name = uid, string(uid)
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", UID: theJob.UID, Controller: ptr.To(true)}}
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
	return slim(slim(p))
}

func slim(p *corev1.Pod) *corev1.Pod {
	slim, _ := Slim(p)
	return slim
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
	s.Set(p)
	s.expect(usage.Times{Running: 1, Since: began})
	s.pass(time.Minute)
	end := over(p, began.Add(50*time.Second), corev1.PodSucceeded)
	s.Set(end)
	s.expect(usage.Times{Ended: 50 * time.Second, Succeeded: 50 * time.Second})
	s.Set(end)
	s.pass(time.Minute)
	s.Remove("p")
	s.expect(usage.Times{Ended: 50 * time.Second, Succeeded: 50 * time.Second, Count: 1})
	if len(s.pods) != 0 {
		t.Errorf("%d Pods are held", len(s.pods))
	}
}

// A Pod whose end nobody tells is known to have run until the watch last told something. Until it's
// seen to be gone, it may have.
func TestAPodVanishes(t *testing.T) {
	s := newStory(t)
	s.Set(running("p", began))
	s.pass(10 * time.Second)
	s.now = s.now.Add(time.Hour)
	s.Remove("p")
	s.expect(usage.Times{Ended: 10 * time.Second, Unknown: time.Hour, Count: 1})
}

// The watch tells that a Pod is deleted whose end it didn't tell. It ran until then, or until it
// had to be gone. How much of that is known depends on whether the watch was interrupted.
func TestAPodIsDeleted(t *testing.T) {
	for name, row := range map[string]struct {
		// silent is for how long the watch has told nothing, and late for how long it has told of old
		// events since.
		silent, late time.Duration
		// deletion is when the Pod has to be gone, after its start; zero: never.
		deletion, ahead time.Duration
		ran, unknown    time.Duration
	}{
		"of a quiet worker":                      {silent: time.Minute, ran: 70 * time.Second},
		"before it had to be gone":               {silent: time.Minute, deletion: 90 * time.Second, ran: 70 * time.Second},
		"after it had to be gone":                {silent: time.Minute, deletion: 40 * time.Second, ran: 40 * time.Second},
		"by force":                               {silent: time.Minute, deletion: 70 * time.Second, ran: 70 * time.Second},
		"in a worker with another clock":         {silent: time.Minute, deletion: 40 * time.Second, ahead: time.Hour, ran: 40 * time.Second},
		"the watch was interrupted":              {silent: 10 * time.Minute, ran: 10 * time.Second, unknown: 10 * time.Minute},
		"it was, and the Pod had to be gone":     {silent: 10 * time.Minute, deletion: 40 * time.Second, ran: 10 * time.Second, unknown: 30 * time.Second},
		"it was, the Pod had to be gone before":  {silent: 10 * time.Minute, deletion: 5 * time.Second, ran: 5 * time.Second},
		"not the first event after interruption": {silent: 10 * time.Minute, late: 5 * time.Second, ran: 10 * time.Second, unknown: 605 * time.Second},
		"long after an interruption":             {silent: 10 * time.Minute, late: time.Minute, ran: 670 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.ahead = row.ahead
			bound := began.Add(-row.ahead)
			p := running("p", bound)
			s.pass(time.Second) // the Pod's own time is in whole seconds
			s.Set(p)
			s.pass(10 * time.Second)
			s.now = s.now.Add(row.silent)
			if row.late != 0 {
				s.Heard()
				s.now = s.now.Add(row.late)
			}
			if row.deletion != 0 {
				p.DeletionTimestamp = ptr.To(metav1.NewTime(bound.Add(row.deletion)))
			}
			s.Delete(slim(p))
			s.Delete(slim(p))
			s.expect(usage.Times{Ended: row.ran, Unknown: row.unknown, Count: 1})
			if len(s.pods) != 0 {
				t.Errorf("%d Pods are held", len(s.pods))
			}
		})
	}
}

// The last that the watch tells of a deleted Pod is its end.
func TestADeletedPodTellsItsEnd(t *testing.T) {
	s := newStory(t)
	p := running("p", began)
	s.Set(p)
	s.pass(time.Minute)
	s.Delete(over(p, began.Add(30*time.Second), corev1.PodSucceeded))
	s.expect(usage.Times{Ended: 30 * time.Second, Succeeded: 30 * time.Second, Count: 1})
}

// The worker's clock is set while a Pod runs that vanishes.
func TestAVanishedPodsTimeIsByTheHubsClock(t *testing.T) {
	s := newStory(t)
	s.Set(running("p", began))
	s.pass(10 * time.Second)
	s.ahead = time.Hour
	s.Remove("p")
	s.expect(usage.Times{Ended: 10 * time.Second, Count: 1})
}

// The worker's clock has just been set when a Pod gets its node, and the hub doesn't know that yet.
func TestAPodStartsAsTheClockIsSet(t *testing.T) {
	s := newStory(t)
	s.pass(time.Minute)
	s.ahead = -40 * time.Second
	s.now = s.now.Add(time.Second)
	s.Set(running("p", s.now))
	s.ahead = 0
	s.pass(10 * time.Second)
	s.Remove("p")
	s.expect(usage.Times{Ended: 11 * time.Second, Count: 1})
}

// The worker's clock is an hour behind or ahead.
func TestClocksDiffer(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(fmt.Sprint(ahead), func(t *testing.T) {
			s := newStory(t)
			s.ahead = ahead
			s.Set(running("p", began.Add(-ahead)))
			s.pass(time.Minute)
			s.expect(usage.Times{Running: 1, Since: began.Add(-ahead)})
			s.Remove("p")
			s.expect(usage.Times{Ended: time.Minute})
		})
	}
}

// Times that make no sense count as zero, or as the most that there can be.
func TestLies(t *testing.T) {
	s := newStory(t)
	s.Set(over(running("backwards", began), began.Add(-time.Hour), corev1.PodFailed))
	s.expect(usage.Times{})
	for i := range 3 {
		s.Set(over(running(types.UID(fmt.Sprint(i)), time.Unix(0, 0)), time.Unix(1<<40, 0), corev1.PodFailed))
	}
	s.expect(usage.Times{Ended: 3 * maxTime})
}

func TestPodsOfOthersTakeNoMemory(t *testing.T) {
	s := newStory(t)
	p := running("p", began)
	p.OwnerReferences[0].Kind = "ReplicaSet"
	s.Set(p)
	s.Set(over(p, began, corev1.PodFailed))
	if len(s.pods)+len(s.jobs) != 0 {
		t.Error("it is held")
	}
	s.Set(&corev1.Pod{ObjectMeta: running("q", began).ObjectMeta}) // no node
	if len(s.pods) != 0 {
		t.Error("a Pod without a node is held")
	}
}

// A tenant's Pods whose controller has the UID of another tenant's Job aren't that one's.
func TestPodsOfAnotherNamespaceDontCount(t *testing.T) {
	s := newStory(t)
	forged := running("forged", began)
	forged.Namespace = "evil"
	s.Set(forged)
	s.Set(running("p", began))
	if got := s.Times(theJob); got.Running != 1 {
		t.Errorf("%d Pods run", got.Running)
	}
}

// TestAWorkerThatMakesUpPods sends as many as it likes, in each way in which it can.
func TestAWorkerThatMakesUpPods(t *testing.T) {
	pod := func(i int) *corev1.Pod { return running(types.UID(fmt.Sprint("p", i)), began) }
	long := types.UID(strings.Repeat("x", objectnames.MaxUID+1))
	for name, row := range map[string]struct {
		times int
		send  func(*Store, int)
		most  int
	}{
		"with long UIDs": {10, func(s *Store, i int) {
			s.Set(running(types.UID(fmt.Sprint(long, i)), began))
		}, 0},
		"of Jobs with long UIDs": {10, func(s *Store, i int) {
			p := pod(i)
			p.OwnerReferences[0].UID = long
			s.Set(over(p, began, corev1.PodFailed))
		}, 0},
		"that go at once": {maxPods + 1000, func(s *Store, i int) {
			s.Set(pod(i))
			s.Remove(pod(i).UID)
		}, 0},
		"that are there twice": {maxPods + 1000, func(s *Store, i int) {
			s.Set(over(pod(i), began, corev1.PodFailed))
			if i%2 == 0 {
				s.Set(pod(i))
			}
		}, maxPods},
		"one that comes and goes": {1000, func(s *Store, _ int) {
			s.Set(pod(1))
			s.Remove("p1")
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			for i := range row.times {
				row.send(s.Store, i)
			}
			if len(s.pods) > row.most || s.gone.Len() > maxGone || len(s.jobs) > 1 {
				t.Errorf("%d Pods, %d Jobs, %d gone; want up to %d Pods", len(s.pods), len(s.jobs), s.gone.Len(), row.most)
			}
		})
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
					s.Set(over(p, there, corev1.PodSucceeded))
				case end > now && Start(p).Equal(there):
					s.Set(p)
				}
			}
			was[now] = s.Times(theJob)
			s.pass(time.Second)
		}
		ahead := s.ahead
		s.ahead = 0 // the worker's clock is set
		for now, want := range was {
			at := began.Add(now - ahead)
			got, _ := s.TimesAt(theJob, usage.Accounted{At: at, Newest: want.Newest, Running: want.Running})
			ran := func(t usage.Times) time.Duration { return t.Ended + time.Duration(t.Running)*at.Sub(t.Since) }
			if d := ran(got) - ran(want); d.Abs() > time.Millisecond || got.Succeeded != want.Succeeded || got.Count != want.Count {
				t.Fatalf("seed %d, %v: times are %+v, were %+v", seed, now, got, want)
			}
		}
	}
}

// Those that are compared with an account are the Pods that it counted, also if the worker's clock
// was set.
func TestThenIsByThePodsOwnTimes(t *testing.T) {
	s := newStory(t)
	for i := range 4 {
		p := running(types.UID(fmt.Sprint(i)), began.Add(time.Duration(i)*time.Minute))
		s.Set(over(p, Start(p).Add(time.Second), corev1.PodSucceeded))
	}
	for _, set := range []time.Duration{-time.Hour, 0, time.Hour} {
		at := began.Add(2*time.Minute + time.Second)
		if got, _ := s.TimesAt(theJob, usage.Accounted{At: at.Add(set), Newest: at.Add(-time.Second)}); got.Count+got.Running != 3 {
			t.Errorf("%v: times are %+v, want those of 3 Pods", set, got)
		}
	}
}

// A scheduler whose API server lost what it wrote gives a Pod its node again, later: it may be a
// Pod of that time.
func TestAPodGetsItsNodeLater(t *testing.T) {
	s := newStory(t)
	for uid, created := range map[types.UID]time.Duration{"again": -time.Second, "the same second": 0, "new": time.Second} {
		p := running(uid, began.Add(12*time.Second))
		p.CreationTimestamp = metav1.NewTime(began.Add(created))
		slim, _ := Slim(p)
		s.Set(slim)
	}
	if got, _ := s.TimesAt(theJob, usage.Accounted{At: began.Add(15 * time.Second), Newest: began, Running: 1}); got.Later != 2 || got.Running != 0 {
		t.Errorf("times are %+v, want those of no Pod, and of 2 later", got)
	}
}

// A worker's clock is set back. By their own times, Pods that had ended before it was seem to end
// later than the account was written, also when the clock is set forward again.
func TestAClockIsSetBack(t *testing.T) {
	const set = 40 * time.Second
	s := newStory(t)
	for i, by := range []time.Duration{0, 0, set, set} {
		p := running(types.UID(fmt.Sprint(i)), began.Add(time.Duration(i)*5*time.Second-by))
		s.Set(over(p, Start(p).Add(3*time.Second), corev1.PodSucceeded))
	}
	s.Set(running("last", began.Add(20*time.Second-set)))
	then := usage.Accounted{At: began.Add(22*time.Second - set), Newest: began.Add(5 * time.Second), Running: math.MaxInt64}
	for _, c := range []struct {
		back          time.Duration
		running       int64
		counted, runs int64
	}{{set, math.MaxInt64, 4, 1}, {0, 1, 4, 1}, {0, 2, 3, 2}, {0, math.MaxInt64, 2, 3}} {
		s.now, s.ahead, then.Running = began.Add(22*time.Second), c.back, c.running
		got, _ := s.TimesAt(theJob, then)
		if got.Ended != time.Duration(c.counted)*3*time.Second || got.Count != c.counted || got.Running != c.runs {
			t.Errorf("%+v: times are %+v", c, got)
		}
	}
}

// What is listed after all was forgotten is another view, and before that there is none.
func TestViews(t *testing.T) {
	s, other := newStory(t), newStory(t)
	s.Set(running("p", began))
	s.expect(usage.Times{Running: 1})
	seen := map[int64]bool{0: true}
	for _, store := range []*Store{s.Store, other.Store, s.Store} {
		store.Listed()
		store.Listed()
		view := store.Times(theJob).View
		if then, listed := store.TimesAt(theJob, usage.Accounted{}); seen[view] || then.View != view || listed.View != view {
			t.Errorf("view %d, seen %v", view, seen)
		}
		seen[view] = true
		store.Forget()
		if got := store.Times(theJob); got != (usage.Times{}) {
			t.Errorf("times are %+v, and all is forgotten", got)
		}
	}
}

// A scheduler that lost its API server says later that the Pod got its node at another time.
func TestANodeIsAssignedTwice(t *testing.T) {
	s := newStory(t)
	s.Set(running("p", began))
	s.Set(running("p", began.Add(5*time.Second)))
	s.expect(usage.Times{Running: 1, Since: began.Add(5 * time.Second)})
	s.Set(over(running("p", began.Add(5*time.Second)), began.Add(20*time.Second), corev1.PodSucceeded))
	s.expect(usage.Times{Ended: 15 * time.Second, Succeeded: 15 * time.Second})
}

// TestMirrorsOfOneUID: a worker's API server answers with one UID to each create of a mirror, and
// has very many Pods of it. Each Job compares its account with them.
func TestMirrorsOfOneUID(t *testing.T) {
	const pods, jobs, seconds = 20_000, 100, 60
	s := newStory(t)
	for i := range pods {
		s.Set(over(running(types.UID(fmt.Sprint(i)), began), began.Add(time.Second), corev1.PodSucceeded))
	}
	s.Listed()
	looks, latest := 0, 0
	for second := range seconds {
		for range jobs {
			if then, listed := s.TimesAt(theJob, usage.Accounted{At: s.now, Newest: s.now, Running: 1}); then.View != 0 {
				looks, latest = looks+2, second
				if then.Count+then.Running != pods || listed.View != then.View {
					t.Fatalf("times are %+v, and were %+v when the Pods were listed", then, listed)
				}
			}
		}
		s.pass(time.Second)
	}
	most := int((seconds*time.Second+walkAhead)/(pods*walkPace)) + 2
	t.Logf("%d looks at %d Pods", looks, pods)
	if looks > most || latest < seconds-2 {
		t.Errorf("%d looks at all Pods, the last after %d s, want %d, and always some", looks, latest, most)
	}
}
