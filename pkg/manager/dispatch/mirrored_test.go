package dispatch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/mirrortest"
	"github.com/jobferry/jobferry/pkg/util/digest"
)

// running is the status of a mirror with n Pods that succeeded, and one that runs.
func running(n int32) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		mirrortest.Shows(j, batchv1.JobStatus{
			StartTime: ptr.To(metav1.NewTime(noon.Add(-30 * time.Minute))),
			Succeeded: n, Active: 1, Ready: ptr.To[int32](1), Terminating: ptr.To[int32](0),
		})
	}
}

// announced is the status of a mirror whose Pods have ended, shortly before its end.
func announced(j *batchv1.Job) {
	running(2)(j)
	j.Status.Active, j.Status.Ready = 0, ptr.To[int32](0)
	j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{
		Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon),
	})
}

// ended is the status that follows.
func ended(j *batchv1.Job) {
	announced(j)
	j.Status.CompletionTime = ptr.To(metav1.NewTime(noon))
	j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{
		Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon),
	})
}

// noLivePods is as after a move: the new mirror hasn't told of any.
func noLivePods(j *batchv1.Job) { j.Status.Active, j.Status.Ready, j.Status.Terminating = 0, nil, nil }

// stoppedJob is a mirror that its Job controller has stopped.
func stoppedJob(j *batchv1.Job) {
	noLivePods(j)
	j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue})
}

// started is a hub Job on worker a that shows that its mirror has started.
func started(changes ...func(*batchv1.Job)) *batchv1.Job {
	return hubJob(append([]func(*batchv1.Job){placedOn("a"), running(0)}, changes...)...)
}

func TestABusyHubIsToldInTime(t *testing.T) {
	busyHub := func(d time.Duration) func(*Snapshot) {
		return func(s *Snapshot) {
			s.WritesInFlight, s.LastStatusWrite, s.UnshownSince = BusyFrom+3, noon.Add(-d), noon.Add(-d)
		}
	}
	for name, row := range map[string]lookRow{
		"a busy hub isn't told of a start at once": {hub: hubJob(placedOn("a")), mirror: mirrorOf(hubJob(), running(0)), given: busyHub(1900 * time.Millisecond), after: 100 * time.Millisecond},
		"but in time":     {hub: hubJob(placedOn("a")), mirror: mirrorOf(hubJob(), running(0)), given: busyHub(2 * time.Second), then: []string{"status"}},
		"after a restart": {hub: hubJob(placedOn("a")), mirror: mirrorOf(hubJob(), running(0)), given: func(s *Snapshot) { s.WritesInFlight = 100 }, then: []string{"status"}},
		"nor of progress, and is looked at again": {hub: started(), mirror: mirrorOf(hubJob(), running(1)), given: busyHub(500 * time.Millisecond), after: 1500 * time.Millisecond},
		"it waits for the end that is announced":  {hub: started(), mirror: mirrorOf(hubJob(), announced), given: busyHub(1900 * time.Millisecond), after: 100 * time.Millisecond},
		"it's told of the end at once":            {hub: hubJob(placedOn("a")), mirror: mirrorOf(hubJob(), ended), given: busyHub(0), then: []string{"status"}},
		"a hub that doesn't answer for long": {hub: started(), mirror: mirrorOf(hubJob(), running(1)), given: func(s *Snapshot) {
			s.WritesInFlight, s.LastStatusWrite = 1000, noon.Add(-10*time.Second)
		}, then: []string{"status"}},
		"each change is wanted": {hub: started(), mirror: mirrorOf(hubJob(), running(1)), given: func(s *Snapshot) {
			busyHub(time.Millisecond)(s)
			s.Timing.ProgressFloor = 0
		}, then: []string{"status"}},
	} {
		t.Run(name, row.check)
	}
}

func TestAnEndThatIsAnnounced(t *testing.T) {
	changedAgo := func(d time.Duration) func(*Snapshot) {
		return func(s *Snapshot) { s.UnshownSince = noon.Add(-d) }
	}
	endsOthers := func(s *Snapshot) {
		s.Assigned.Pods.WaitingSince, s.Assigned.ControllerSeen = noon.Add(-30*time.Second), noon
	}
	startsLater := func(j *batchv1.Job) {
		j.Status.StartTime = ptr.To(metav1.NewTime(mirror.TrueCondition(&j.Status, batchv1.JobSuccessCriteriaMet).LastTransitionTime.Add(time.Minute)))
	}
	for name, row := range map[string]lookRow{
		"it waits for the end":                   {hub: started(), mirror: mirrorOf(hubJob(), announced), given: changedAgo(100 * time.Millisecond), after: 400 * time.Millisecond},
		"but not for long":                       {hub: started(), mirror: mirrorOf(hubJob(), announced), given: changedAgo(500 * time.Millisecond), then: []string{"status"}},
		"nor after a restart":                    {hub: started(), mirror: mirrorOf(hubJob(), announced), then: []string{"status"}},
		"an end that doesn't come, not yet news": {hub: started(announced), mirror: mirrorOf(hubJob(), announced), after: 30 * time.Second},
		"an end that doesn't come is told": {hub: started(announced), mirror: mirrorOf(hubJob(), announced),
			given: func(s *Snapshot) { s.Assigned.Pods.WaitingSince = noon.Add(-30 * time.Second) },
			after: DefaultTiming().Recheck, reports: "Deferred: The Job's Pods have ended in worker a, but its Job controller hasn't ended the Job"},
		"nor while the Job controller ends others": {hub: started(announced), mirror: mirrorOf(hubJob(), announced), given: endsOthers, after: 30 * time.Second},
		"unless it can't, as its clock was set back": {hub: started(announced, startsLater), mirror: mirrorOf(hubJob(), announced, startsLater), given: endsOthers,
			after: DefaultTiming().Recheck, reports: "Deferred: The Job's Pods have ended in worker a, but its Job controller hasn't ended the Job: a clock was set back"},
		"nor with a start":     {hub: hubJob(placedOn("a")), mirror: mirrorOf(hubJob(), announced), given: changedAgo(0), then: []string{"status"}},
		"the end doesn't wait": {hub: started(), mirror: mirrorOf(hubJob(), ended), given: changedAgo(0), then: []string{"status"}},
	} {
		t.Run(name, row.check)
	}
}

func TestMirroredInStep(t *testing.T) {
	for name, row := range map[string]lookRow{
		"status comes up":        {hub: hubJob(placedOn("a")), mirror: mirrorOf(hubJob(), running(0)), then: []string{"status"}},
		"progress comes up":      {hub: started(), mirror: mirrorOf(hubJob(), running(1)), then: []string{"status"}},
		"progress waits a bit":   {hub: started(), mirror: mirrorOf(hubJob(), running(1)), given: func(s *Snapshot) { s.LastStatusWrite = noon.Add(-400 * time.Millisecond) }, after: 100 * time.Millisecond},
		"a suspension goes down": {hub: started(suspendedJob), mirror: mirrorOf(hubJob(), running(0)), then: []string{"patch [spec.suspend] in a"}},
		"parallelism goes down":  {hub: started(func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To[int32](1) }), mirror: mirrorOf(hubJob(), running(0)), then: []string{"patch [spec.parallelism] in a"}},
		"what the worker changed back": {hub: started(func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To[int32](1) }), mirror: mirrorOf(hubJob(), running(0)),
			given: func(s *Snapshot) {
				s.Assigned.Unmet = unmetParallelism(1, noon)
			}, after: time.Second, reports: "Drift: Worker a: spec.parallelism: changed back"},
		"it's tried again": {hub: started(func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To[int32](1) }), mirror: mirrorOf(hubJob(), running(0)),
			given: func(s *Snapshot) { s.Assigned.Unmet = unmetParallelism(1, noon.Add(-time.Second)) }, then: []string{"patch [spec.parallelism] in a"}},
		"more and more rarely": {hub: started(func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To[int32](1) }), mirror: mirrorOf(hubJob(), running(0)),
			given: func(s *Snapshot) { s.Assigned.Unmet = unmetParallelism(70, noon.Add(-time.Second)) },
			after: maxUnmetBackoff - time.Second, reports: "Drift: Worker a: spec.parallelism: changed back"},
		"what somebody undoes again and again waits": {hub: started(suspendedJob), mirror: mirrorOf(hubJob(), running(0)),
			given: func(s *Snapshot) { s.Assigned.Patches = Attempts{Count: 7, Last: noon.Add(-time.Second)} },
			after: 3 * time.Second, reports: "Drift: Worker a: somebody there keeps changing back: spec.suspend"},
		"but not for ever": {hub: started(suspendedJob), mirror: mirrorOf(hubJob(), running(0)),
			given: func(s *Snapshot) { s.Assigned.Patches = Attempts{Count: 70, Last: noon.Add(-time.Minute)} },
			then:  []string{"patch [spec.suspend] in a"}},
		"a lie is refused": {hub: started(running(1)), mirror: mirrorOf(hubJob(), func(j *batchv1.Job) { running(0)(j); j.Status.Failed = -1 }),
			after: DefaultTiming().Recheck, reports: "StatusRejected: Worker a sent a status that breaks the rule"},
		"a mirror that lost progress is stopped": {hub: started(running(2)), mirror: mirrorOf(hubJob(), running(1)),
			then: []string{"suspend in a"}, reports: "ProgressRestored: Worker a has lost progress"},
		"one that has ended so is made again": {hub: started(func(j *batchv1.Job) { running(1)(j); j.Status.Failed = 2 }), mirror: mirrorOf(hubJob(), ended),
			then: []string{"delete in a"}, reports: "ProgressRestored: The Job ended in worker a, which had lost progress of it"},
		"but not again and again": {hub: started(running(2)), mirror: mirrorOf(hubJob(), running(1)),
			given: func(s *Snapshot) { s.Assigned.Patches = Attempts{Count: 70, Last: noon.Add(-time.Second)} }, after: time.Minute - time.Second,
			reports: "StatusRejected: Worker a sent a status that breaks the rule"},
		"it stays so until its Pods have ended": {hub: started(running(2)), mirror: mirrorOf(hubJob(), running(1), suspendedJob),
			after: DefaultTiming().Recheck, reports: "StatusRejected: Worker a sent a status that breaks the rule"},
		"then it's seeded": {hub: started(running(2)), mirror: mirrorOf(hubJob(), running(1), suspendedJob, stoppedJob), then: []string{"seed 2 in a"}},
		"and resumed": {hub: started(running(2)), mirror: mirrorOf(hubJob(), running(2), suspendedJob, stoppedJob),
			given: func(s *Snapshot) { noLivePods(s.Job) }, then: []string{"patch [spec.suspend] in a"}},
		"a new mirror is seeded": {hub: started(running(1)), mirror: mirrorOf(hubJob(), suspendedJob), then: []string{"seed 1 in a"}},
		"then it's resumed": {hub: started(running(1)), mirror: mirrorOf(hubJob(), suspendedJob, func(j *batchv1.Job) { j.Status.Succeeded = 1 }),
			given: func(s *Snapshot) { noLivePods(s.Job) }, then: []string{"patch [spec.suspend] in a"}},
		"no room to resume it": {hub: started(running(1)), mirror: mirrorOf(hubJob(), suspendedJob, func(j *batchv1.Job) { j.Status.Succeeded = 1 }),
			given: func(s *Snapshot) { s.Assigned.Fits = false; noLivePods(s.Job) }, then: []string{"move from a"}},
	} {
		t.Run(name, row.check)
	}
}

// A mirror that's gone, though the hub has heard of Pods of it that run, is told. One that left no
// trace isn't, and what a moved Job shows may be of the worker before.
func TestAMirrorVanishes(t *testing.T) {
	moved := func(j *batchv1.Job) { hubstate.Set(j, hubstate.Changes{hubstate.MovedWith: "{}"}) }
	waits := func(j *batchv1.Job) { j.Annotations[v1alpha1.AnnotationOnClusterLost] = v1alpha1.OnClusterLostWait }
	told := "MirrorRecreated: The Job is gone from worker a, and the hub hasn't seen how it ended there: what its Pods did may be done again"
	for name, row := range map[string]lookRow{
		"its Pods ran": {hub: hubJob(placedOn("a"), running(1)), then: []string{"create suspended in a"}, reports: "Mirrored: Created in worker a\n" + told},
		"its Pods ran, and it's to run once": {hub: hubJob(placedOn("a"), running(1), waits), then: []string{"confirm that a is left", "status"}, reports: strings.Replace(told,
			"what its Pods did may be done again",
			"it isn't run again, as its annotation jobferry.dev/on-cluster-lost says; change that, or create the Job anew, to have it run", 1)},
		"the hub shows that": {hub: hubJob(placedOn("a"), func(j *batchv1.Job) {
			j.Status.StartTime, j.Status.Succeeded = &metav1.Time{Time: noon}, 1
		}, func(j *batchv1.Job) { hubstate.Set(j, hubstate.Changes{hubstate.Vanished: "a"}) }, waits),
			then: []string{"confirm that a is left"}, reports: strings.Replace(told, "what its Pods did may be done again",
				"it isn't run again, as its annotation jobferry.dev/on-cluster-lost says; change that, or create the Job anew, to have it run", 1)},
		"none ran, and it's to run once": {hub: hubJob(placedOn("a"), waits), then: []string{"create in a"}, reports: "Mirrored: Created in worker a"},
		"none ran":                       {hub: hubJob(placedOn("a"), running(0)), then: []string{"create in a"}, reports: "Mirrored: Created in worker a"},
		"it's just placed":               {hub: hubJob(placedOn("a")), then: []string{"create in a"}, reports: "Mirrored: Created in worker a"},
		"it moved from there":            {hub: hubJob(placedOn("a"), running(1), moved), then: []string{"create suspended in a"}, reports: "Mirrored: Created in worker a"},
	} {
		t.Run(name, row.check)
	}
}

// A mirror that has ended before it heard of more completions.
func TestEndedShort(t *testing.T) {
	elastic := func(n int32, changes ...func(*batchv1.Job)) *batchv1.Job {
		return hubJob(append([]func(*batchv1.Job){placedOn("a"), func(j *batchv1.Job) {
			j.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
			j.Spec.Completions, j.Spec.Parallelism, j.Generation = &n, &n, 2
		}}, changes...)...)
	}
	has := func(indexes string, n int32) func(*batchv1.Job) {
		return func(j *batchv1.Job) { j.Status.CompletedIndexes, j.Status.Succeeded = indexes, n }
	}
	none := func(j *batchv1.Job) { running(0)(j); j.Status.Active, j.Status.Ready = 0, ptr.To[int32](0) }
	deadline := func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = ptr.To[int64](30 * 60) }
	last := func(change func(*batchv1.Job)) *batchv1.Job { return mirrorOf(elastic(2), none, change, has("0,1", 2)) }
	for name, row := range map[string]lookRow{
		"the hub takes the progress": {hub: elastic(4, none), mirror: last(ended), then: []string{"status"}},
		"and then makes a new mirror": {hub: elastic(4, none, has("0,1", 2)), mirror: last(ended), then: []string{"delete in a"},
			reports: "MirrorRecreated: The Job ended in worker a with 2 of 4 completions: the higher number reached it too late; it is created there again"},
		"not while the Pods of the old one end": {hub: elastic(4, none, has("0,1", 2)), mirror: last(announced),
			then: []string{"patch [spec.completions spec.parallelism] in a"}},
		"nor if the hub doesn't take it": {hub: elastic(4, none), mirror: last(ended),
			given: func(s *Snapshot) { s.Assigned.StatusRejected = true }, after: DefaultTiming().Recheck},
		"if it was never raised, a worker lies": {hub: elastic(4, none, has("0,1", 2), func(j *batchv1.Job) { j.Generation = 1 }), mirror: last(ended),
			then: []string{"status"}},
		"no time is left for more": {hub: elastic(4, none, has("0,1", 2), deadline), mirror: last(ended), then: []string{"status"}},
		"it goes":                  {hub: elastic(4, none, has("0,1", 2)), mirror: mirrorOf(elastic(2), none, ended, has("0,1", 2), deleting), after: DefaultTiming().StuckNotice},
		"it's gone":                {hub: elastic(4, none, has("0,1", 2)), then: []string{"create suspended in a"}, reports: "Mirrored: Created in worker a"},
	} {
		t.Run(name, row.check)
	}
}

// lookRow is a Job and its mirror in step, but for what the row says.
type lookRow struct {
	hub     *batchv1.Job
	mirror  *batchv1.Job
	given   func(*Snapshot)
	then    []string
	after   time.Duration
	reports string
}

func (r lookRow) check(t *testing.T) {
	t.Helper()
	s := look(r.hub, at("a", r.mirror))
	if r.given != nil {
		r.given(s)
	}
	plan := Decide(s)
	checkActions(t, plan, r.then)
	if len(r.then) == 0 && plan.After != r.after {
		t.Errorf("looks again after %s, want %s", plan.After, r.after)
	}
	checkReports(t, plan, r.reports)
}

func checkReports(t *testing.T, plan Plan, want string) {
	t.Helper()
	var got []string
	for _, r := range plan.Reports {
		got = append(got, r.Reason+": "+r.Message)
	}
	text := strings.Join(got, "\n")
	if want == "" && text != "" || !strings.Contains(text, want) {
		t.Errorf("reports %q, want %q", text, want)
	}
}

// unmetParallelism is a patch that a worker changed back so many times.
func unmetParallelism(tries int, last time.Time) Unmet {
	return Unmet{
		Diff: digest.Of(`{"spec":{"parallelism":1}}`), Notes: []mirror.Note{{Field: "spec.parallelism", Message: "changed back"}},
		Tries: Attempts{Count: tries, Last: last},
	}
}

// A worker drops each of very many annotations: few notes of that are kept.
func TestUnmetOfManyFields(t *testing.T) {
	notes := make([]mirror.Note, 29_000)
	for i := range notes {
		notes[i] = mirror.Note{Field: fmt.Sprint("metadata.annotations.", i), Message: "changed back"}
	}
	kept := Unmet{}.Again("a", notes, noon).Notes
	if cap(kept) > 3*maxUnmetNotes || !slices.Equal(kept[:maxUnmetNotes], notes[:maxUnmetNotes]) || kept[maxUnmetNotes].Field != "28980 more fields" {
		t.Errorf("%d of %d notes are kept: %v", len(kept), cap(kept), kept)
	}
	if few := (Unmet{}).Again("a", notes[:maxUnmetNotes], noon).Notes; len(few) != maxUnmetNotes {
		t.Errorf("%d notes are kept of %d", len(few), maxUnmetNotes)
	}
}

// A worker names a field of very many bytes, or keeps a label with such a name: little is kept.
func TestUnmetOfALongField(t *testing.T) {
	long := mirror.Note{Field: "spec." + strings.Repeat("a", 300<<10), Message: "changed back"}
	if kept := (Unmet{}).Again("a", []mirror.Note{long}, noon).Notes; len(kept[0].Field) > maxUnmetField {
		t.Errorf("%d bytes are kept", len(kept[0].Field))
	}
}

func TestUnmetAgain(t *testing.T) {
	u := Unmet{}.Again("a", nil, noon).Again("a", nil, noon.Add(time.Second))
	if u.Tries != (Attempts{2, noon.Add(time.Second)}) {
		t.Errorf("the same patch: %+v", u.Tries)
	}
	if other := u.Again("b", nil, noon); other.Tries.Count != 1 || u.wait("b", minBackoff, noon) != 0 {
		t.Errorf("another patch: %+v", other)
	}
}
