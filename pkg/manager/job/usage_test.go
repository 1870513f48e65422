package job

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/line"
	"github.com/jobferry/jobferry/pkg/manager/usage"
	"github.com/jobferry/jobferry/pkg/util/objectnames"
)

// timedWorker shows the times of one mirror's Pods.
type timedWorker struct {
	worker
	workers
	times usage.Times
}

func (v *timedWorker) get(string) (worker, bool)                     { return v, true }
func (v *timedWorker) viewHolders(types.NamespacedName) []workerView { return nil }
func (v *timedWorker) view(string) (workerView, bool)                { return v, true }
func (v *timedWorker) Synced() bool                                  { return true }
func (v *timedWorker) PodTimes(objectnames.ID) usage.Times           { return v.times }
func (v *timedWorker) PodTimesAt(objectnames.ID, usage.Accounted) (then, listed usage.Times) {
	return v.times, v.times
}
func (v *timedWorker) View() clusters.View {
	return clusters.View{Capacity: clusters.CapacityState{TimesKnown: true}}
}

// What is gone is known from the first look at a view on in which all Pods have been listed.
func TestPodsThatAreGoneBeforeTheFirstLook(t *testing.T) {
	listed := usage.Times{Count: 2, Ended: 8 * time.Second, View: 1}
	one, missing := usage.Times{Count: 1, Ended: 5 * time.Second, View: 1}, usage.Before{Seconds: 3, Count: 1}
	again := one
	again.View = 2
	for name, row := range map[string]struct {
		first, then  usage.Times
		early, after usage.Before
		awaited      bool
	}{
		"they are there":                {first: listed, then: listed},
		"they haven't been listed":      {first: usage.Times{}, then: listed, awaited: true},
		"one is gone":                   {first: one, then: one, early: missing, after: missing},
		"one goes later":                {first: listed, then: one},
		"all is listed again meanwhile": {first: listed, then: again, after: missing},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1_000_000, 0)
			account := usage.Account{{Worker: "west", UID: "m", Seconds: 8, Count: 2, At: usage.Moment(now.Unix())}}
			j := &batchv1.Job{}
			hubstate.Set(j, hubstate.Changes{hubstate.Usage: account.String()})
			v := &timedWorker{}
			r, g, rec := &Reconciler{workers: v}, &gatherer{workers: v}, newStore(line.NewRuntimes()).open(types.NamespacedName{Name: "j"})
			look := func(times usage.Times) (usage.Before, usage.Observation) {
				v.times = times
				o := g.observation("team", usage.Observation{Worker: "west", UID: "m", Current: true})
				s := &dispatch.Snapshot{Job: j, Accounted: usage.Read(j), Now: now, Used: dispatch.Used{Observations: []usage.Observation{o}}}
				before := r.usedBefore(rec, &turn{Snapshot: s})
				return before[usage.ID{Worker: "west", UID: "m"}], s.Used.Observations[0]
			}
			before, o := look(row.first)
			if before != row.early || o.InTouch == row.awaited || o.Awaited != row.awaited {
				t.Errorf("first: %+v, observed %+v", before, o)
			}
			if before, o := look(row.then); before != row.after || !o.InTouch || o.Awaited {
				t.Errorf("then: %+v, observed %+v", before, o)
			}
		})
	}
}

// A worker deletes the mirror of a Job that runs, and makes it again with another UID, ever again:
// only the last one is remembered. What was found of the mirror of another worker stays.
func TestAMirrorThatIsMadeAgainAndAgain(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	account := usage.Account{{Worker: "east", UID: "m", Seconds: 8, Count: 2, At: usage.Moment(now.Unix())}}
	j := &batchv1.Job{}
	hubstate.Set(j, hubstate.Changes{hubstate.Usage: account.String()})
	v := &timedWorker{times: usage.Times{Count: 1, Ended: 5 * time.Second, View: 1}}
	r, g, rec := &Reconciler{workers: v}, &gatherer{workers: v}, newStore(line.NewRuntimes()).open(types.NamespacedName{Name: "j"})
	for i := range 1000 {
		s := &dispatch.Snapshot{Job: j, Accounted: usage.Read(j), Now: now, Used: dispatch.Used{Observations: []usage.Observation{
			g.observation("team", usage.Observation{Worker: "west", UID: types.UID(fmt.Sprint(i)), Current: true}),
			g.observation("team", usage.Observation{Worker: "east", UID: "m", Current: true}),
		}}}
		before := r.usedBefore(rec, &turn{Snapshot: s})
		if got, want := before[usage.ID{Worker: "east", UID: "m"}], (usage.Before{Seconds: 3, Count: 1}); len(before) != 2 || got != want {
			t.Fatalf("before: %+v", before)
		}
		v.times.Count, v.times.Ended = 2, 8*time.Second // what was found before counts
	}
	rec.update(func(m *memory) {
		if len(m.usedBefore) > maxUsedBefore+2 {
			t.Errorf("%d mirrors are remembered", len(m.usedBefore))
		}
	})
}

// A Job that has ended is compared with its account anew at each reconcile, as a manager does that
// takes the lead.
func TestTheAccountOfAFinishedJobStays(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	j := &batchv1.Job{}
	j.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
	j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now)}}
	written := usage.Account{{Worker: "west", UID: "m", Count: 1, Unknown: 40, At: usage.Moment(now.Unix()), Ended: usage.Moment(now.Unix())}}
	hubstate.Set(j, hubstate.Changes{hubstate.Usage: written.String()})
	v := &timedWorker{times: usage.Times{Count: 1, Unknown: 40 * time.Second, View: 1, Listed: now.Add(-time.Minute)}}
	r, g, rec := &Reconciler{workers: v}, &gatherer{workers: v}, newStore(line.NewRuntimes()).open(types.NamespacedName{Name: "j"})
	for range 2 {
		s := &dispatch.Snapshot{Job: j, Accounted: usage.Read(j), Now: now.Add(time.Minute)}
		s.Used.Observations = g.used(s)
		s.Used.Before = r.usedBefore(rec, &turn{Snapshot: s})
		if next := s.Account(); written.Lacks(next, true) || next[0].Unknown != 40 {
			t.Errorf("the account is %s, and next %s", written, next)
		}
		rec.update((*memory).forgetLife)
	}
}

// A mirror that is made again in its worker is seeded with what the hub knows. When its Pods are
// gone, the next manager doesn't take these for Pods of its own that nobody saw.
func TestAMirrorThatIsMadeAgainIsSeeded(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	hub, mirror := &batchv1.Job{}, &batchv1.Job{}
	hub.CreationTimestamp, hub.Spec.Completions, hub.Spec.Parallelism = metav1.NewTime(now.Add(-time.Hour)), ptr.To[int32](8), ptr.To[int32](2)
	mirror.UID, mirror.CreationTimestamp = "again", metav1.NewTime(now)
	v := &timedWorker{}
	r, g := &Reconciler{workers: v}, &gatherer{workers: v}
	look := func(rec *record, succeeded int32, times usage.Times) usage.Mirror {
		mirror.Status.Succeeded, v.times = succeeded, times
		s := &dispatch.Snapshot{Job: hub, Accounted: usage.Read(hub), Now: now, Assigned: &dispatch.Worker{Name: "west", Mirror: mirror}}
		s.Used.Observations = g.used(s)
		s.Used.Before = r.usedBefore(rec, &turn{Snapshot: s})
		account := s.Account()
		hubstate.Set(hub, hubstate.Changes{hubstate.Usage: account.String()})
		hub.Status.Succeeded = succeeded
		return account.Of(usage.ID{Worker: "west", UID: "again"})
	}
	hub.Status.Succeeded = 4
	store := newStore(line.NewRuntimes())
	first := store.open(types.NamespacedName{Name: "first"})
	look(first, 4, usage.Times{View: 1, Listed: now.Add(-time.Minute)})
	now = now.Add(time.Minute)
	look(first, 8, usage.Times{Count: 4, Ended: 40 * time.Second, View: 1, Listed: now.Add(-2 * time.Minute)})
	now = now.Add(time.Minute)
	if m := look(store.open(types.NamespacedName{Name: "next"}), 8, usage.Times{View: 2, Listed: now}); m.Count != 4 || m.Seconds != 40 || m.Unknown != 0 {
		t.Errorf("the account has %d Pods, %v s, and %v s that are unknown", m.Count, m.Seconds, m.Unknown)
	}
}

// A manager that was stopped hears of its mirrors before it hears of their Pods. What it writes
// then is another one's truth when it has ended, so the account stays as it is until both watches
// agree.
func TestThePodsWatchIsBehind(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	at := usage.Moment(now.Unix())
	written := usage.Account{{Worker: "west", UID: "m", Pods: 2, Since: at - 200_010, At: at - 200_000, Ended: at - 10}}
	j := &batchv1.Job{}
	j.CreationTimestamp = metav1.NewTime(now.Add(-300_000 * time.Second))
	hubstate.Set(j, hubstate.Changes{hubstate.Usage: written.String()})
	running := usage.Times{Running: 2, Since: now.Add(-200_010 * time.Second), View: 1, Listed: now.Add(-250_000 * time.Second)}
	ended := usage.Times{Count: 2, Ended: 400_022 * time.Second, View: 1, Listed: running.Listed}
	for name, row := range map[string]struct {
		status batchv1.JobStatus
		times  usage.Times
		behind bool
	}{
		"both run":                         {status: batchv1.JobStatus{Active: 2, Terminating: ptr.To[int32](0)}, times: running},
		"they end":                         {status: batchv1.JobStatus{Active: 1, Terminating: ptr.To[int32](1)}, times: running},
		"the mirror says that one ended":   {status: batchv1.JobStatus{Active: 1, Terminating: ptr.To[int32](0)}, times: running, behind: true},
		"the mirror has ended":             {status: batchv1.JobStatus{Succeeded: 2, Terminating: ptr.To[int32](0)}, times: running, behind: true},
		"the mirror has, and so have they": {status: batchv1.JobStatus{Succeeded: 2, Terminating: ptr.To[int32](0)}, times: ended},
		"the mirror says less than none":   {status: batchv1.JobStatus{Active: -7, Terminating: ptr.To[int32](0)}, times: ended},
		"the mirror is behind":             {status: batchv1.JobStatus{Active: 2, Terminating: ptr.To[int32](0)}, times: ended},
		"the mirror doesn't say it all":    {status: batchv1.JobStatus{Succeeded: 2}, times: running},
	} {
		t.Run(name, func(t *testing.T) {
			m := &batchv1.Job{Status: row.status}
			m.UID = "m"
			v := &timedWorker{times: row.times}
			r, g, rec := &Reconciler{workers: v}, &gatherer{workers: v}, newStore(line.NewRuntimes()).open(types.NamespacedName{Name: "j"})
			s := &dispatch.Snapshot{Job: j, Accounted: usage.Read(j), Now: now, Assigned: &dispatch.Worker{Name: "west", Mirror: m}}
			s.Used.Observations = g.used(s)
			s.Used.Before = r.usedBefore(rec, &turn{Snapshot: s})
			next := s.Account()
			if stays := cmp.Equal(next.Of(written[0].ID()), written[0]); stays != row.behind {
				t.Errorf("the account is %s, and was %s", next, written)
			}
			if since := written.Open(next, s.Used.Observations, true); row.behind && now.Sub(since) > time.Minute {
				t.Errorf("the account is open since %s, where the Job has just ended", since)
			}
		})
	}
}

// A mirror may have as many Pods at once as its worker is to run of a divided Job, also when the
// Job has left it.
func TestHowManyPodsAMirrorMayHave(t *testing.T) {
	mirrorOf := func(uid types.UID, parallelism int32) *batchv1.Job {
		m := &batchv1.Job{}
		m.UID, m.Spec.Parallelism = uid, &parallelism
		return m
	}
	j := &batchv1.Job{Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](10)}}
	account := usage.Account{{Worker: "lost", UID: "l"}, {Worker: "east", UID: "l"}}
	hubstate.Set(j, hubstate.Changes{hubstate.Usage: account.String(), hubstate.MovedFrom: "former"})
	s := &dispatch.Snapshot{Job: j, Accounted: usage.Read(j), Assigned: &dispatch.Worker{Name: "west", Mirror: mirrorOf("w", 7)}, Others: []dispatch.Worker{
		{Name: "lost", Mirror: mirrorOf("l", 3)}, {Name: "former", Mirror: mirrorOf("f", 1000)}, {Name: "none"},
	}}
	got := map[string]int32{}
	for _, o := range (&gatherer{workers: &timedWorker{}}).used(s) {
		got[o.Worker] = o.AtOnce
	}
	if diff := cmp.Diff(map[string]int32{"west": 7, "lost": 3, "former": 10, "east": 10}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Of a mirror that is gone from the Job's worker, and whose Pods nobody saw, so many may have run.
func TestHowManyPodsAMirrorHadThatIsGone(t *testing.T) {
	next := &batchv1.Job{}
	next.UID = "next"
	for name, m := range map[string]*batchv1.Job{"gone": nil, "another one is there": next} {
		j := &batchv1.Job{Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](10)}}
		hubstate.Set(j, hubstate.Changes{hubstate.Cluster: "west", hubstate.Usage: usage.Account{{Worker: "west", UID: "w"}}.String()})
		seen := (&gatherer{workers: &timedWorker{}}).used(&dispatch.Snapshot{Job: j, Accounted: usage.Read(j), Assigned: &dispatch.Worker{Name: "west", Mirror: m}})
		if last := seen[len(seen)-1]; last.UID != "w" || last.AtOnce != 10 {
			t.Errorf("%s: %+v", name, seen)
		}
	}
}

func TestFencedAt(t *testing.T) {
	fenced, confirmed := time.Unix(1_000_000, 0).UTC(), time.Unix(1_000_060, 0).UTC()
	m := &batchv1.Job{}
	if at := fencedAt(m); !at.IsZero() {
		t.Errorf("a mirror that never was is said to be fenced at %s", at)
	}
	m.Annotations = map[string]string{v1alpha1.AnnotationFenced: fenced.Format(time.RFC3339)}
	if at := fencedAt(m); !at.Equal(fenced) {
		t.Errorf("at %s, want %s", at, fenced)
	}
	m.Status.Conditions = []batchv1.JobCondition{{Type: v1alpha1.ConditionJobFenced, LastTransitionTime: metav1.NewTime(confirmed)}}
	if at := fencedAt(m); !at.Equal(confirmed) {
		t.Errorf("at %s, want %s", at, confirmed)
	}
}
