package plan

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

func TestSuspend(t *testing.T) {
	started := func(j *batchv1.Job) { j.Status.StartTime = at(0) }
	wasSuspended := withCondition(batchv1.JobSuspended, "JobSuspended")
	for _, row := range []struct {
		name  string
		job   *batchv1.Job
		start *metav1.Time
		event string
		cond  string
	}{
		{"started", aJob(), at(5), "", ""},
		{"created suspended", aJob(suspended), nil, "Suspended", "Suspended=True"},
		{"suspended later", aJob(suspended, started), nil, "Suspended", "Suspended=True"},
		{"still suspended", aJob(suspended, wasSuspended, func(j *batchv1.Job) {
			j.Status.Conditions[0].Message = "Job suspended"
		}), nil, "", "Suspended=True"},
		{"resumed", aJob(started, wasSuspended), at(5), "Resumed", "Suspended=False"},
		{"runs on", aJob(started), at(0), "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := Compute(snap(row.job, 5), testOptions).Record(Result{Created: 1})
			if !a.Status.StartTime.Equal(row.start) {
				t.Errorf("startTime %v, want %v", a.Status.StartTime, row.start)
			}
			event, cond := "", ""
			if len(a.Events) > 0 {
				event = a.Events[0].Reason
			}
			if types := conditionTypes(a.Status); len(types) > 0 {
				cond = types[0]
			}
			if event != row.event || cond != row.cond {
				t.Errorf("event %q, condition %q, want %q, %q", event, cond, row.event, row.cond)
			}
		})
	}
}

func TestCountersFollowTheOutcome(t *testing.T) {
	pods := []*corev1.Pod{aPod("a", isReady(0)), aPod("b", isReady(0)), aPod("gone", deletedAt(0))}
	for _, row := range []struct {
		name                       string
		parallelism                int32
		outcome                    Result
		active, ready, terminating int32
	}{
		{"all created", 5, Result{Created: 3}, 5, 2, 1},
		{"some refused", 5, Result{Created: 1}, 3, 2, 1},
		{"deleted", 1, Result{Deleted: uids("a")}, 1, 1, 2},
		{"deletion refused", 1, Result{}, 2, 2, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := Compute(snap(aJob(sized(row.parallelism, 9)), 0, pods...), testOptions).Record(row.outcome).Status
			if s.Active != row.active || *s.Ready != row.ready || *s.Terminating != row.terminating {
				t.Errorf("active %d, ready %d, terminating %d", s.Active, *s.Ready, *s.Terminating)
			}
		})
	}
}

// The steps of one Pod: listed, untracked, counted; each in a write of its own.
func TestTrackingSteps(t *testing.T) {
	job := aJob(sized(1, 3))
	a := Compute(snap(job, 0, aPod("a", succeeded)), testOptions).Record(Result{Created: 1})
	if got := a.Status; got.Succeeded != 0 || len(got.UncountedTerminatedPods.Succeeded) != 1 {
		t.Fatalf("before the release: counted %d, listed %v", got.Succeeded, got.UncountedTerminatedPods)
	}
	if got := a.Settle(uids()).Status; got.Succeeded != 0 {
		t.Errorf("counted although still tracked")
	}
	job.Status = a.Status
	// The controller was killed after the release: the next one counts.
	got := Compute(snap(job, 0, aPod("a", succeeded, untracked)), testOptions).Record(Result{}).Status
	if got.Succeeded != 1 || len(got.UncountedTerminatedPods.Succeeded) != 0 {
		t.Errorf("after a restart: counted %d, listed %v", got.Succeeded, got.UncountedTerminatedPods)
	}
}

func TestListIsBounded(t *testing.T) {
	var pods []*corev1.Pod
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		pods = append(pods, aPod(name, succeeded))
	}
	a := Compute(snap(aJob(sized(9, 9)), 0, pods...), testOptions).Record(Result{})
	if n := len(a.Status.UncountedTerminatedPods.Succeeded); n != testOptions.MaxUncountedPods || !a.More || len(a.Untrack) != n {
		t.Errorf("listed %d, untracks %d, more %v", n, len(a.Untrack), a.More)
	}
}

// A UID is never in both lists (kubernetes#125410).
func TestPodThatChangedItsMind(t *testing.T) {
	job := aJob(func(j *batchv1.Job) {
		j.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Succeeded: []types.UID{"a"}}
	})
	a := Compute(snap(job, 0, aPod("a", failed)), testOptions).Record(Result{})
	if got := a.Status.UncountedTerminatedPods; len(got.Failed) != 0 || len(got.Succeeded) != 1 {
		t.Errorf("listed %v", got)
	}
}

func TestElasticIndexedJob(t *testing.T) {
	job := aJob(sized(2, 2), indexed, func(j *batchv1.Job) { j.Status.CompletedIndexes, j.Status.Succeeded = "0,3-5", 4 })
	a := Compute(snap(job, 0), testOptions).Record(Result{Created: 1})
	if a.Status.CompletedIndexes != "0" || a.Status.Succeeded != 1 || a.Tally.Succeeded != 0 {
		t.Errorf("completed %q, succeeded %d, tally %+v", a.Status.CompletedIndexes, a.Status.Succeeded, a.Tally)
	}
}

func TestUnchangedStatusIsNotWritten(t *testing.T) {
	job := aJob(sized(1, 3))
	a := Compute(snap(job, 0, aPod("a", running)), testOptions).Record(Result{})
	if !a.Changed {
		t.Fatal("the first status isn't written")
	}
	job.Status = a.Status
	again := Compute(snap(job, 9, aPod("a", running)), testOptions).Record(Result{})
	if again.Changed || again.Settle(uids()).Changed {
		t.Errorf("the same status is written again")
	}
}

func TestTooManySucceededPods(t *testing.T) {
	a := Compute(snap(aJob(sized(2, 1)), 0, aPod("a", succeeded), aPod("b", succeeded)), testOptions).Record(Result{})
	if got := a.Settle(allOf(a.Untrack)).Events; len(got) != 2 || got[0].Reason != "TooManySucceededPods" {
		t.Errorf("events %v", got)
	}
}

func TestPodsOfADeletedJobAreUntracked(t *testing.T) {
	job := aJob(sized(2, 9), func(j *batchv1.Job) { j.DeletionTimestamp = at(0) })
	a := Compute(snap(job, 0, aPod("a", running), aPod("b", succeeded)), testOptions).Record(Result{})
	if len(a.Untrack) != 2 {
		t.Errorf("untracks %d of 2", len(a.Untrack))
	}
}

func TestCreateReason(t *testing.T) {
	gone := aPod("a", running, deletedAt(-60))
	for _, row := range []struct {
		name string
		job  *batchv1.Job
		pods []*corev1.Pod
		want CreateReason
	}{
		{"the first Pods", aJob(), nil, createNew},
		{"after a failure", aJob(), []*corev1.Pod{aPod("a", failed)}, recreateTerminatingOrFailed},
		{"while one terminates", aJob(policy()), []*corev1.Pod{gone}, recreateTerminatingOrFailed},
		{"only failed ones", aJob(onlyFailedReplaced), []*corev1.Pod{aPod("a", failed)}, recreateFailed},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := Compute(snap(row.job, 0, row.pods...), testOptions).CreateReason; got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
}

func TestOwnership(t *testing.T) {
	orphan := func(p *corev1.Pod) { p.OwnerReferences = nil }
	stranger := func(p *corev1.Pod) { p.OwnerReferences[0].UID = "another" }
	relabelled := func(p *corev1.Pod) { p.Labels = map[string]string{"job": "else"} }
	leaving := func(j *batchv1.Job) { j.DeletionTimestamp = at(0) }
	for _, row := range []struct {
		name string
		job  *batchv1.Job
		pod  *corev1.Pod
		want string
	}{
		{"its own", aJob(), aPod("p"), "owned"},
		{"a matching orphan", aJob(), aPod("p", orphan), "adopt"},
		{"one that the cache doesn't show as adopted yet", aJob(), aPod("adopted", orphan, untracked), "owned"},
		{"an orphan that doesn't match", aJob(), aPod("p", orphan, relabelled), ""},
		{"an orphan being deleted", aJob(), aPod("p", orphan, deletedAt(0)), ""},
		{"an orphan, but the Job is being deleted", aJob(leaving), aPod("p", orphan), ""},
		{"another controller's", aJob(), aPod("p", stranger), ""},
		{"its own that stopped matching", aJob(), aPod("p", relabelled), "release"},
		{"the same, but the Job is being deleted", aJob(leaving), aPod("p", relabelled), ""},
		{"untracked, but never deleted", aJob(), aPod("p", running, untracked), "adopt"},
		{"counted", aJob(), aPod("p", failed, untracked), "owned"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := OwnershipOf(row.job, SelectorOf(row.job), []*corev1.Pod{row.pod}, Pending{Adopted: map[types.UID]*corev1.Pod{"adopted": aPod("adopted")}}, testOptions.TrackingFinalizer)
			got := ""
			switch {
			case len(c.Owned) == 1:
				got = "owned"
			case len(c.Adopt) == 1:
				got = "adopt"
			case len(c.Release) == 1:
				got = "release"
			}
			if got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func TestBackoffLimitPerIndexStatus(t *testing.T) {
	a := Compute(snap(aJob(sized(3, 3), indexLimit(0)), 0, aPod("a", index(1), failed), aPod("b", index(2), succeeded)), testOptions).Record(Result{})
	if got := a.Status; ptr.Deref(got.FailedIndexes, "") != "1" || got.CompletedIndexes != "2" || a.Tally.IndexesFailed != 1 {
		t.Errorf("failed %v, completed %q", got.FailedIndexes, got.CompletedIndexes)
	}
}
