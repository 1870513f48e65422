package usage

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

var created = time.Unix(1_000_000, 0)

// story is a hub Job with its account.
type story struct {
	t       *testing.T
	job     HubJob
	account Account
	now     time.Time
	before  map[ID]Before
}

func newStory(t *testing.T, parallelism int32) *story {
	j := &batchv1.Job{}
	j.CreationTimestamp = metav1.NewTime(created)
	j.Spec.Parallelism = ptr.To(parallelism)
	requests := corev1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("1Gi"), "pods": resource.MustParse("1")}
	return &story{t: t, job: HubJob{Job: j, Requests: requests, Unfinished: true}, now: created, before: map[ID]Before{}}
}

func (s *story) pass(d time.Duration) { s.now = s.now.Add(d) }

// see writes the account, as the hub has it after that.
func (s *story) see(all ...Observation) {
	s.account = s.account.Next(s.job, all, s.before, s.now)
	hubstate.Set(s.job.Job, hubstate.Changes{hubstate.Usage: s.account.String()})
	if read := Read(s.job.Job); read.String() != s.account.String() {
		s.t.Errorf("read %s, written %s", read, s.account)
	}
	s.account = Read(s.job.Job)
}

func current(worker string, uid types.UID, t Times) Observation {
	return Observation{Worker: worker, UID: uid, Current: true, InTouch: true, Times: t}
}

func left(worker string, uid types.UID, inTouch bool, t Times) Observation {
	return Observation{Worker: worker, UID: uid, Elsewhere: true, InTouch: inTouch, Times: t}
}

func (s *story) expect(worker string, resource corev1.ResourceName, total, repeated float64) {
	s.t.Helper()
	for _, u := range s.account.At(s.now) {
		if u.Worker != worker || u.Resource != resource {
			continue
		}
		if u.Total != total || u.Repeated != repeated {
			s.t.Errorf("%s of %s: %v, %v of it repeated; want %v, %v", resource, worker, u.Total, u.Repeated, total, repeated)
		}
		return
	}
	s.t.Errorf("nothing of %s in %s: %s", resource, worker, s.account)
}

func ended(seconds, succeeded int) Times {
	return Times{Ended: time.Duration(seconds) * time.Second, Succeeded: time.Duration(succeeded) * time.Second}
}

func TestAJobOnOneWorker(t *testing.T) {
	s := newStory(t, 10)
	s.pass(10 * time.Second)
	s.see(current("west", "m", Times{Running: 4, Since: s.now}))
	s.pass(time.Minute)
	s.expect("west", "cpu", 120, 0) // of Pods that run
	s.see(current("west", "m", ended(200, 150)))
	s.expect("west", "cpu", 100, 0)
	s.expect("west", "memory", 200<<30, 0)
	s.expect("west", "pods", 200, 0) // failures are the Job's own
}

// Pods are lost with their worker. When it's back, it says for how long they really ran.
func TestAWorkerIsLost(t *testing.T) {
	s := newStory(t, 10)
	s.pass(10 * time.Second)
	s.see(current("west", "m", Times{Running: 2, Since: s.now, Ended: 8 * time.Second, Succeeded: 8 * time.Second}))
	s.pass(time.Minute)
	s.see(current("west", "m", Times{Running: 2, Since: s.now.Add(-time.Minute), Ended: 8 * time.Second, Succeeded: 8 * time.Second}))
	s.pass(time.Hour)
	s.see(left("west", "m", false, Times{}), current("east", "n", Times{Running: 1, Since: s.now}))
	s.pass(time.Minute)
	s.expect("west", "pods", 128, 120)
	s.expect("east", "pods", 60, 0)
	s.see(left("west", "m", true, ended(100, 100)), current("east", "n", ended(60, 60)))
	s.expect("west", "pods", 100, 92)
	s.pass(time.Minute)
	s.see(left("west", "m", true, ended(300, 300)), current("east", "n", ended(60, 60)))
	s.expect("west", "pods", 300, 292)
}

func TestAMovedJobStartsFromZero(t *testing.T) {
	s := newStory(t, 1)
	s.pass(time.Minute)
	s.see(current("west", "m", ended(50, 50)))
	s.job.Afresh = true
	s.see(left("west", "m", true, ended(50, 50)), current("east", "n", Times{Running: 1, Since: s.now}))
	s.expect("west", "pods", 50, 50)
}

// The worker is back before the Job has started elsewhere: the Job goes on in the mirror that it
// left.
func TestAJobReturns(t *testing.T) {
	s := newStory(t, 1)
	s.pass(time.Minute)
	s.see(current("west", "m", ended(10, 10)))
	s.see(left("west", "m", false, Times{}))
	s.pass(time.Minute)
	s.see(current("west", "m", ended(50, 50)))
	s.expect("west", "pods", 50, 0)
}

// Somebody in the worker deletes the mirror.
func TestAMirrorIsReplaced(t *testing.T) {
	s := newStory(t, 1)
	s.pass(time.Minute)
	s.see(current("west", "m", ended(50, 20)))
	s.see(Observation{Worker: "west", UID: "m", InTouch: true, Times: ended(50, 20)}, current("west", "n", Times{Running: 1, Since: s.now}))
	s.expect("west", "pods", 50, 30)
}

// A finished Job has left nobody: its worker may be gone later.
func TestAFinishedJobStays(t *testing.T) {
	s := newStory(t, 1)
	s.pass(time.Minute)
	s.see(current("west", "m", ended(50, 20)))
	s.job.Unfinished, s.job.Requests = false, nil
	s.see(left("west", "m", false, Times{}))
	s.expect("west", "cpu", 25, 0)
}

// A mirror that comes to a worker after its Job has finished, as from a backup, isn't the Job's.
func TestAFinishedJobGetsNoOtherMirror(t *testing.T) {
	s := newStory(t, 1)
	s.pass(time.Minute)
	s.see(current("west", "m", ended(50, 50)))
	s.job.Unfinished, s.job.Requests = false, nil
	s.see(current("west", "n", ended(30, 30)))
	s.expect("west", "pods", 50, 0)
	if len(s.account) != 1 {
		s.t.Errorf("%d mirrors: %s", len(s.account), s.account)
	}
}

func (s *story) expectUnknown(want float64) {
	s.t.Helper()
	var got float64
	for _, u := range s.account.At(s.now) {
		if u.Resource == corev1.ResourcePods {
			got += u.Unknown
		}
	}
	if got != want {
		s.t.Errorf("%v s are unknown, want %v: %s", got, want, s.account)
	}
}

// What may have run in a mirror that the Job left doesn't lower what is seen to run in the next one
// there.
func TestUnknownTimesBoundOnlyWhatIsUnknown(t *testing.T) {
	s := newStory(t, 1)
	s.pass(time.Minute)
	s.account = Account{{Worker: "west", UID: "m", Unknown: 120, At: momentOf(s.now), Left: true}}
	s.see(current("west", "n", Times{Ended: 50 * time.Second, Unknown: time.Hour}))
	s.expect("west", "pods", 50, 0)
	s.expectUnknown(120)
}

// What succeeded isn't repeated, also if its Pods are gone.
func TestWhatSucceededIsKept(t *testing.T) {
	s := newStory(t, 10)
	s.pass(time.Minute)
	written, there := ended(50, 20), ended(10, 5)
	written.Count, there.Count = 5, 1
	s.see(current("west", "m", written))
	m := s.account.Of(ID{"west", "m"})
	s.before[ID{"west", "m"}] = m.Before(there, there, &Observation{}, s.now)
	s.see(current("west", "m", ended(12, 7)))
	s.see(left("west", "m", true, ended(12, 7)))
	s.expect("west", "pods", 52, 30)
}

func TestEditedRequests(t *testing.T) {
	s := newStory(t, 1)
	s.pass(time.Minute)
	s.see(current("west", "m", ended(10, 10)))
	s.job.Requests = corev1.ResourceList{"cpu": resource.MustParse("100m"), "nvidia.com/gpu": resource.MustParse("1")}
	s.see(current("west", "m", ended(10, 10)))
	s.expect("west", "cpu", 5, 0)
	s.expect("west", "nvidia.com/gpu", 10, 0)
}

func TestResourcesAreBounded(t *testing.T) {
	s := newStory(t, 1)
	for i := range 100 {
		s.job.Requests[corev1.ResourceName(fmt.Sprintf("example.com/%03d", i))] = resource.MustParse("1")
	}
	s.pass(time.Minute)
	s.see(current("west", "m", ended(10, 10)))
	if n := len(s.account[0].Requests); n != MaxResources {
		t.Errorf("%d resources", n)
	}
	s.expect("west", "memory", 10<<30, 0)
}

// A worker that lies is bounded by the hub's clock and by how many Pods the Job wants, and changes
// nothing of another worker's account.
func TestAWorkerLies(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test's choice
		s := newStory(t, 3)
		number := func() time.Duration { return time.Duration(random.Int64() - random.Int64()) }
		for range 50 {
			s.pass(time.Duration(random.IntN(100)) * time.Second)
			if random.IntN(5) == 0 {
				s.see(current("liar", types.UID(fmt.Sprint("l", s.now.Unix())), Times{Ended: number()}), current("honest", "h", ended(7, 7)))
			}
			lie := Times{Ended: number(), Succeeded: number(), Unknown: number(), Running: int64(number()), Since: time.Unix(int64(number()), 0)}
			s.see(current("liar", "l", lie), current("honest", "h", ended(7, 7)))
			s.expect("honest", "pods", 7, 0)
			s.see(left("stranger", "s", true, lie), current("honest", "h", ended(7, 7))) // no mirror of ours
			most := 6 * (s.now.Sub(created) + slack).Seconds()
			var total, settled, unknown float64
			for _, m := range s.account {
				if m.Worker == "liar" {
					total, settled, unknown = total+float64(m.Until(s.now)), settled+float64(m.Settled()), unknown+float64(m.Unknown)
				}
			}
			if total < 0 || max(total, settled, unknown) > most {
				t.Fatalf("seed %d: %v seconds, %v settled, %v unknown; bound %v", seed, total, settled, unknown, most)
			}
		}
	}
}

// However often a Job is moved, its account is small, and nothing of it is lost in the same worker.
func TestManyMoves(t *testing.T) {
	s := newStory(t, 1)
	for i := range 100 {
		s.pass(time.Minute)
		uid := types.UID(fmt.Sprint(i))
		all := []Observation{current("west", uid, ended(10, 0))}
		if i > 0 {
			all = append(all, Observation{Worker: "west", UID: types.UID(fmt.Sprint(i - 1)), InTouch: true, Times: ended(10, 0)})
		}
		s.see(all...)
	}
	s.expect("west", "pods", 1000, 990)
	if len(s.account) > MaxMirrors+1 {
		t.Errorf("%d mirrors", len(s.account))
	}
}

func TestGrowth(t *testing.T) {
	s := newStory(t, 2)
	s.pass(time.Minute)
	s.see(current("west", "m", Times{Running: 1, Since: s.now, Ended: 10 * time.Second}))
	before := s.account
	s.pass(time.Minute)
	s.see(current("west", "m", ended(70, 0)))
	for _, u := range Growth(before, s.account) {
		if want := map[corev1.ResourceName]float64{"pods": 60, "cpu": 30, "memory": 60 << 30}[u.Resource]; u.Total != want || u.Repeated != 0 {
			t.Errorf("%+v, want %v", u, want)
		}
	}
	if g := Growth(s.account, s.account); len(g) != 0 {
		t.Errorf("the same account has grown by %v", g)
	}
}

func TestCost(t *testing.T) {
	prices := v1alpha1.Cost{"cpu": resource.MustParse("0.03"), "memory": resource.MustParse("0.004")}
	for _, row := range []struct {
		u    Usage
		want float64
	}{
		{Usage{Resource: "cpu", Total: 7200}, 0.06},
		{Usage{Resource: "memory", Total: 3600 * (2 << 30)}, 0.008},
		{Usage{Resource: "pods", Total: 1e9}, 0},
	} {
		if got := row.u.Cost(prices); got < row.want*0.999999 || got > row.want*1.000001 {
			t.Errorf("%+v costs %v, want %v", row.u, got, row.want)
		}
	}
}

func TestAnAccountThatSomebodyEdited(t *testing.T) {
	job := &batchv1.Job{}
	for _, text := range []string{
		"", "x", `{"worker":1}`, `[{"seconds":"1e400"}]`, `[{"seconds":1e16}]`, `[{"seconds":-1}]`, `[{"succeeded":1e308}]`,
		`[{"pods":-1}]`, `[{"unknown":-1}]`, `[{"pods":9e18}]`, `[{"at":9000000000000000000}]`, `[{"requests":{"cpu":"-1"}}]`,
		`[{"requests":{"cpu":"1e999999999"}}]`, `[{"REQUESTS":{"cpu":"1e999999999"}}]`,
		`[{"left":true,"requests":{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}}]`,
	} {
		hubstate.Set(job, hubstate.Changes{hubstate.Usage: text})
		if a := Read(job); len(a) > 0 {
			t.Errorf("%q is read as %v", text, a)
		}
	}
}

func TestAnAccountThatIsNone(t *testing.T) {
	if text := (Account{{Seconds: Seconds(math.Inf(1))}}).String(); text != "" {
		t.Errorf("it's written as %q", text)
	}
}

// A worker goes on to say that Pods of a finished Job run, in the mirror that it left or the last
// one.
func TestAFinishedJobsPodsRunForever(t *testing.T) {
	s := newStory(t, 1)
	running := Times{Running: 1, Since: created}
	s.pass(time.Minute)
	s.see(current("west", "m", running))
	s.see(left("west", "m", true, running), current("east", "n", running))
	s.job.Unfinished, s.job.Ended = false, s.now
	s.pass(afterEnd)
	s.see(left("west", "m", true, running), current("east", "n", running))
	before := s.account
	s.pass(time.Hour)
	s.see(left("west", "m", true, running), current("east", "n", running))
	if grown := Growth(before, s.account); len(grown) > 0 {
		t.Errorf("the account has grown by %v", grown)
	}
}

// What is learnt of mirrors without a status to write: of those that the Job left, and of all at
// its end.
func TestLateNews(t *testing.T) {
	s := newStory(t, 2)
	s.pass(time.Minute)
	runs := Times{Running: 1, Since: s.now}
	s.see(current("west", "m", runs))
	written := s.account
	look := func(ended bool, all ...Observation) (lacks, open bool) {
		next := written.Next(s.job, all, nil, s.now)
		return written.Lacks(next, ended), !written.Open(next, all, ended).IsZero()
	}
	over := Times{Ended: 5 * time.Second}
	silent := Observation{Worker: "west", UID: "m", Current: true, Awaited: true}
	for name, row := range map[string]struct {
		o                  Observation
		ended, lacks, open bool
	}{
		"it runs":                         {o: current("west", "m", runs)},
		"its Pod has ended":               {o: current("west", "m", over)},
		"its Pod runs after its end":      {o: current("west", "m", runs), ended: true, open: true},
		"its Pod has ended after its end": {o: current("west", "m", over), ended: true, lacks: true},
		"nothing is known after its end":  {o: silent, ended: true, open: true},
		"nothing will ever be known":      {o: Observation{Worker: "west", UID: "m", Current: true}, ended: true},
		"it left, and its Pod runs":       {o: left("west", "m", true, runs), open: true},
		"it left, and its Pod has ended":  {o: left("west", "m", true, over), lacks: true},
		"its Pod vanished after its end":  {o: current("west", "m", Times{}), ended: true, lacks: true},
		"some time is unknown":            {o: current("west", "m", Times{Running: 1, Since: s.now, Unknown: time.Second}), ended: true, lacks: true, open: true},
	} {
		if lacks, open := look(row.ended, row.o); lacks != row.lacks || open != row.open {
			t.Errorf("%s: lacks %t, open %t", name, lacks, open)
		}
	}
}

// A mirror counts before the first Pod is seen, if that can't be seen now.
func TestAMirrorThatIsNotInTouch(t *testing.T) {
	s := newStory(t, 2)
	s.pass(time.Minute)
	s.see(current("west", "m", Times{}))
	if len(s.account) > 0 {
		t.Error("a mirror without Pods has an account")
	}
	s.see(Observation{Worker: "west", UID: "m", Current: true, Awaited: true})
	s.see(left("west", "m", true, ended(9, 0)))
	s.expect("west", "pods", 9, 9)
	s.see(Observation{Worker: "east", UID: "n", Former: true, Elsewhere: true, InTouch: true, Times: ended(7, 0)})
	s.expect("east", "pods", 7, 7)
}

// What a mirror says of its Pods is known before the watch of these shows them: it is left before.
func TestAMirrorThatIsLeftBeforeItsPodsAreSeen(t *testing.T) {
	s := newStory(t, 2)
	s.pass(time.Minute)
	started := current("west", "m", Times{})
	started.Started = true
	s.see(started)
	s.see(left("west", "m", true, Times{}))
	s.pass(time.Second)
	s.see(left("west", "m", true, ended(9, 0)))
	s.expect("west", "pods", 9, 9)
}

// The worker's clock is behind by longer than the Job's Pods may count after its end.
func TestTheEndIsByTheHubsClock(t *testing.T) {
	s := newStory(t, 1)
	s.pass(20 * time.Minute)
	s.see(current("west", "m", Times{Running: 1, Since: created}))
	s.job.Ends = true
	s.see(current("west", "m", Times{Running: 1, Since: created}))
	s.job.Ends, s.job.Unfinished, s.job.Ended = false, false, s.now.Add(-time.Hour)
	s.see(current("west", "m", ended(1200, 1200)))
	s.expect("west", "pods", 1200, 0)
}

// Nothing more is learnt of a Job that was deleted: its Pods count until then, and aren't repeated.
func TestAJobIsDeleted(t *testing.T) {
	s := newStory(t, 2)
	s.pass(time.Minute)
	s.see(current("west", "m", Times{Running: 2, Since: s.now, Ended: 10 * time.Second}))
	before := s.account
	s.pass(time.Minute)
	s.see(current("west", "m", Times{Running: 2, Since: s.now.Add(-time.Minute), Ended: 10 * time.Second}))
	for _, u := range Growth(before, s.account.Closed()) {
		if u.Resource == "pods" && (u.Total != 120 || u.Repeated != 0) {
			t.Errorf("it has grown by %+v", u)
		}
	}
	if len(Growth(before, s.account.Closed())) == 0 {
		t.Error("it hasn't grown")
	}
}
