package dispatch

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/mirror"
)

// running is the status of a mirror with n Pods that succeeded, and one that runs.
func running(n int32) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status = batchv1.JobStatus{
			StartTime: ptr.To(metav1.NewTime(noon.Add(-30 * time.Minute))),
			Succeeded: n, Active: 1, Ready: ptr.To[int32](1), Terminating: ptr.To[int32](0),
		}
	}
}

// announced is the status of a mirror whose Pods have ended, shortly before its end.
func announced(j *batchv1.Job) {
	running(2)(j)
	j.Status.Active, j.Status.Ready = 0, ptr.To[int32](0)
	j.Status.Conditions = []batchv1.JobCondition{{
		Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon),
	}}
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

// started is a hub Job on worker a that shows that its mirror has started.
func started(changes ...func(*batchv1.Job)) *batchv1.Job {
	return hubJob(append([]func(*batchv1.Job){placedOn("a"), running(0)}, changes...)...)
}

func TestMirroredInStep(t *testing.T) {
	podless := func(s *Snapshot) { s.Pods.WaitingSince = noon.Add(-10 * time.Minute) }
	refused := func(s *Snapshot) {
		podless(s)
		s.Pods.Asked, s.Pods.Refusal = true, "exceeded quota"
	}
	unschedulable := func(since time.Duration) func(*Snapshot) {
		return func(s *Snapshot) {
			s.Pods = PodsReport{Known: true, Unschedulable: 2, WaitingSince: noon.Add(-since), Message: "0/3 nodes are available"}
		}
	}
	queued := func(waiting, others time.Duration) func(*Snapshot) {
		return func(s *Snapshot) { s.Pods.WaitingSince, s.Home.LastStart = noon.Add(-waiting), noon.Add(-others) }
	}
	hindered := func(since time.Duration) func(*Snapshot) {
		return func(s *Snapshot) {
			s.Pods = PodsReport{Known: true, Hindered: 2, WaitingSince: noon.Add(-since), Hindrance: "container main: ErrImagePull: not found"}
		}
	}
	noPods := func(j *batchv1.Job) {
		j.Status = batchv1.JobStatus{StartTime: ptr.To(metav1.NewTime(noon.Add(-10 * time.Minute))), Active: 0, Ready: ptr.To[int32](0), Terminating: ptr.To[int32](0)}
	}
	pending := func(j *batchv1.Job) { noPods(j); j.Status.Active = 2 }
	changedAgo := func(d time.Duration) func(*Snapshot) {
		return func(s *Snapshot) { s.MirrorChanged = noon.Add(-d) }
	}
	rows := map[string]struct {
		hub     *batchv1.Job
		mirror  *batchv1.Job
		given   func(*Snapshot)
		then    []string
		after   time.Duration
		reports string
	}{
		"status comes up":                            {hub: hubJob(placedOn("a")), mirror: mirrorOf(hubJob(), running(0)), then: []string{"status"}},
		"progress comes up":                          {hub: started(), mirror: mirrorOf(hubJob(), running(1)), then: []string{"status"}},
		"progress waits a bit":                       {hub: started(), mirror: mirrorOf(hubJob(), running(1)), given: func(s *Snapshot) { s.LastStatusWrite = noon.Add(-400 * time.Millisecond) }, after: 100 * time.Millisecond},
		"an end that is announced waits for the end": {hub: started(), mirror: mirrorOf(hubJob(), announced), given: changedAgo(100 * time.Millisecond), after: 400 * time.Millisecond},
		"but not for long":                           {hub: started(), mirror: mirrorOf(hubJob(), announced), given: changedAgo(500 * time.Millisecond), then: []string{"status"}},
		"nor after a restart":                        {hub: started(), mirror: mirrorOf(hubJob(), announced), then: []string{"status"}},
		"nor with a start":                           {hub: hubJob(placedOn("a")), mirror: mirrorOf(hubJob(), announced), given: changedAgo(0), then: []string{"status"}},
		"the end doesn't wait":                       {hub: started(), mirror: mirrorOf(hubJob(), ended), given: changedAgo(0), then: []string{"status"}},
		"a suspension goes down":                     {hub: started(suspendedJob), mirror: mirrorOf(hubJob(), running(0)), then: []string{"patch [spec.suspend] in a"}},
		"parallelism goes down":                      {hub: started(func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To[int32](1) }), mirror: mirrorOf(hubJob(), running(0)), then: []string{"patch [spec.parallelism] in a"}},
		"what the worker changed back": {hub: started(func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To[int32](1) }), mirror: mirrorOf(hubJob(), running(0)),
			given: func(s *Snapshot) {
				s.Unmet = Unmet{Diff: `{"spec":{"parallelism":1}}`, Notes: []mirror.Note{{Field: "spec.parallelism", Message: "changed back"}}}
			}, after: DefaultTiming().Recheck, reports: "Drift: Worker a: spec.parallelism: changed back"},
		"what somebody undoes again and again waits": {hub: started(suspendedJob), mirror: mirrorOf(hubJob(), running(0)),
			given: func(s *Snapshot) { s.Patches = Tries{Times: 7, Last: noon.Add(-time.Second)} },
			after: 3 * time.Second, reports: "Drift: Worker a: somebody there keeps changing back: spec.suspend"},
		"but not for ever": {hub: started(suspendedJob), mirror: mirrorOf(hubJob(), running(0)),
			given: func(s *Snapshot) { s.Patches = Tries{Times: 70, Last: noon.Add(-time.Minute)} },
			then:  []string{"patch [spec.suspend] in a"}},
		"a lie is refused": {hub: started(running(1)), mirror: mirrorOf(hubJob(), func(j *batchv1.Job) { running(0)(j); j.Status.Failed = -1 }),
			after: DefaultTiming().Recheck, reports: "StatusRejected: Worker a sent a status that breaks the rule"},
		"a new mirror is seeded": {hub: started(running(1)), mirror: mirrorOf(hubJob(), suspendedJob), then: []string{"seed 1 in a"}},
		"then it's resumed": {hub: started(running(1)), mirror: mirrorOf(hubJob(), suspendedJob, func(j *batchv1.Job) { j.Status.Succeeded = 1 }),
			given: func(s *Snapshot) { noLivePods(s.Job) }, then: []string{"patch [spec.suspend] in a"}},
		"no room to resume it": {hub: started(running(1)), mirror: mirrorOf(hubJob(), suspendedJob, func(j *batchv1.Job) { j.Status.Succeeded = 1 }),
			given: func(s *Snapshot) { s.Fits = false; noLivePods(s.Job) }, then: []string{"move from a"}},
		"Pods wait, not yet news":                 {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: unschedulable(10 * time.Second), after: 20 * time.Second},
		"Pods wait, told":                         {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: unschedulable(time.Minute), after: 4 * time.Minute, reports: "0/3 nodes are available"},
		"Pods wait too long":                      {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: unschedulable(6 * time.Minute), then: []string{"move from a"}, reports: "0/3 nodes are available"},
		"Pods that can't be started, told":        {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: hindered(time.Minute), after: 5 * time.Minute, reports: "2 Pods can't be started: container main: ErrImagePull: not found"},
		"they stay where they are":                {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: hindered(time.Hour), after: 5 * time.Minute, reports: "2 Pods can't be started: container main: ErrImagePull: not found"},
		"Pods that don't run are looked at again": {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: func(s *Snapshot) { s.Pods.Known = true }, after: 30 * time.Second},
		"not started, nor is any other":           {hub: hubJob(placedOn("a")), mirror: mirrorOf(hubJob()), given: queued(time.Minute, time.Hour), after: 4 * time.Minute, reports: "its Job controller hasn't started the Job"},
		"not started, others are":                 {hub: hubJob(placedOn("a")), mirror: mirrorOf(hubJob()), given: queued(4*time.Minute, 10*time.Second), after: 20 * time.Second},
		"not started, others were":                {hub: hubJob(placedOn("a")), mirror: mirrorOf(hubJob()), given: queued(4*time.Minute, time.Minute), after: 4 * time.Minute, reports: "its Job controller hasn't started the Job"},
		"not started for long, though others are": {hub: hubJob(placedOn("a")), mirror: mirrorOf(hubJob()), given: queued(6*time.Minute, 0), after: 4 * time.Minute, reports: "its Job controller hasn't started the Job"},
		"not started for ever, though others are": {hub: hubJob(placedOn("a")), mirror: mirrorOf(hubJob()), given: queued(10*time.Minute, 0), then: []string{"move from a"}, reports: "its Job controller hasn't started the Job"},
		"started without Pods isn't in a queue":   {hub: hubJob(placedOn("a"), noPods), mirror: mirrorOf(hubJob(), noPods), given: queued(10*time.Minute, 0), then: []string{"ask a"}},
		"no Pods: why?":                           {hub: hubJob(placedOn("a"), noPods), mirror: mirrorOf(hubJob(), noPods), given: podless, then: []string{"ask a"}},
		"no Pods for too long":                    {hub: hubJob(placedOn("a"), noPods), mirror: mirrorOf(hubJob(), noPods), given: refused, then: []string{"move from a"}, reports: "can't be created: exceeded quota"},
		"one ran once: it stays": {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: func(s *Snapshot) { unschedulable(time.Hour)(s); s.Pods.EverRan = true },
			after: DefaultTiming().Recheck},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			s := look(row.hub, seat("a", row.mirror))
			if row.given != nil {
				row.given(s)
			}
			plan := Decide(s)
			checkActions(t, plan, row.then)
			if len(row.then) == 0 && plan.After != row.after {
				t.Errorf("looks again after %s, want %s", plan.After, row.after)
			}
			checkReports(t, plan, row.reports)
		})
	}
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

func TestOrphanLeavesThePods(t *testing.T) {
	hub := hubJob(placedOn("a"), deleting)
	s := look(hub, seat("a", mirrorOf(hubJob())))
	s.Orphan = true
	checkActions(t, Decide(s), []string{"orphan in a"})
}
