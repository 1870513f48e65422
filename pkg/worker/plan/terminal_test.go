package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/util/text"
)

// snap is what a controller sees at the given second after noon.
func snap(job *batchv1.Job, second int, pods ...*corev1.Pod) Snapshot {
	return Snapshot{Job: job, Pods: pods, Now: noon.Add(time.Duration(second) * time.Second)}
}

func TestVerdict(t *testing.T) {
	started := func(j *batchv1.Job) { j.Status.StartTime = at(0) }
	deadline := func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = ptr.To[int64](30) }
	limit := func(n int32) func(*batchv1.Job) {
		return func(j *batchv1.Job) { j.Spec.BackoffLimit = &n }
	}
	restarts := func(j *batchv1.Job) { j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure }
	maxFailed := func(n int32) func(*batchv1.Job) { return func(j *batchv1.Job) { j.Spec.MaxFailedIndexes = &n } }
	anySuccess := func(j *batchv1.Job) {
		j.Spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededCount: ptr.To[int32](1)}}}
	}
	failJob := policy(onExit(batchv1.PodFailurePolicyActionFailJob, 42))
	for _, row := range []struct {
		name   string
		job    *batchv1.Job
		second int
		pods   []*corev1.Pod
		want   string // the reason, empty for none
	}{
		{"a running Job continues", aJob(started), 10, []*corev1.Pod{aPod("a", running)}, ""},
		{"failures up to the limit continue", aJob(limit(1)), 0, []*corev1.Pod{aPod("a", failed)}, ""},
		{"failures above the limit end it", aJob(limit(0)), 0, []*corev1.Pod{aPod("a", failed)}, "BackoffLimitExceeded"},
		{"a counted failure isn't new", aJob(limit(0)), 0, []*corev1.Pod{aPod("a", failed, untracked)}, ""},
		{"restarts below the limit continue", aJob(restarts, limit(2)), 0, []*corev1.Pod{aPod("a", running, restarted(1))}, ""},
		{"restarts at the limit end it", aJob(restarts, limit(2)), 0, []*corev1.Pod{aPod("a", running, restarted(2))}, "BackoffLimitExceeded"},
		{"a limit of 0 allows no restart", aJob(restarts, limit(0)), 0, []*corev1.Pod{aPod("a", running, restarted(1))}, "BackoffLimitExceeded"},
		{"restarts of init containers count", aJob(restarts, limit(2)), 0, []*corev1.Pod{aPod("a", initRestarted(2))}, "BackoffLimitExceeded"},
		{"restarts of both kinds add up", aJob(restarts, limit(3)), 0, []*corev1.Pod{aPod("a", initRestarted(1), running, restarted(1)), aPod("b", initRestarted(1))}, "BackoffLimitExceeded"},
		{"restarts of a Pod that has ended don't count", aJob(restarts, limit(2)), 0, []*corev1.Pod{aPod("a", initRestarted(2), failed)}, ""},
		{"restarts don't count under Never", aJob(limit(2)), 0, []*corev1.Pod{aPod("a", running, restarted(9))}, ""},
		{"before the deadline", aJob(started, deadline), 29, nil, ""},
		{"at the deadline", aJob(started, deadline), 30, nil, "DeadlineExceeded"},
		{"no deadline while suspended", aJob(started, deadline, suspended), 99, nil, ""},
		{"the back-off limit goes before the deadline", aJob(started, deadline, limit(0)), 30, []*corev1.Pod{aPod("a", failed)}, "BackoffLimitExceeded"},
		{"FailJob goes before the back-off limit", aJob(failJob, limit(0)), 0, []*corev1.Pod{aPod("a", exited(42, 0))}, "PodFailurePolicy"},
		{"FailJob waits for the Pod to have ended", aJob(failJob), 0, []*corev1.Pod{aPod("a", running, deletedAt(0))}, ""},
		{"what is recorded stands: failure", aJob(withCondition(batchv1.JobFailureTarget, "Recorded"), limit(0)), 0, []*corev1.Pod{aPod("a", failed)}, "Recorded"},
		{"what is recorded stands: success", aJob(withCondition(batchv1.JobSuccessCriteriaMet, "Recorded"), limit(0)), 0, []*corev1.Pod{aPod("a", failed)}, "Recorded"},
		{"failed indexes up to the maximum continue", aJob(sized(2, 3), indexLimit(0), maxFailed(1)), 0, []*corev1.Pod{aPod("a", index(0), failed)}, ""},
		{"one too many failed index", aJob(sized(2, 3), indexLimit(0), maxFailed(0)), 0, []*corev1.Pod{aPod("a", index(0), failed)}, "MaxFailedIndexesExceeded"},
		{"every index settled, one failed", aJob(sized(2, 2), indexLimit(0)), 0, []*corev1.Pod{aPod("a", index(0), failed), aPod("b", index(1), succeeded)}, "FailedIndexes"},
		{"one index still to be settled", aJob(sized(2, 3), indexLimit(0)), 0, []*corev1.Pod{aPod("a", index(0), failed), aPod("b", index(1), succeeded)}, ""},
		{"an index may be retried up to its limit", aJob(sized(1, 1), indexLimit(1)), 0, []*corev1.Pod{aPod("a", index(0), failures(0), failed)}, ""},
		{"the last retry of an index", aJob(sized(1, 1), indexLimit(1)), 0, []*corev1.Pod{aPod("a", index(0), failures(1), failed)}, "FailedIndexes"},
		{"FailIndex spares the retries", aJob(sized(1, 1), indexLimit(9), policy(onExit(batchv1.PodFailurePolicyActionFailIndex, 3))), 0, []*corev1.Pod{aPod("a", index(0), exited(3, 0))}, "FailedIndexes"},
		{"successPolicy met", aJob(sized(2, 3), indexed, anySuccess), 0, []*corev1.Pod{aPod("a", index(2), succeeded)}, "SuccessPolicy"},
		{"failure goes before successPolicy", aJob(sized(2, 3), indexed, anySuccess, limit(0)), 0, []*corev1.Pod{aPod("a", index(2), succeeded), aPod("b", index(0), failed)}, "BackoffLimitExceeded"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := ""
			if v := Compute(snap(row.job, row.second, row.pods...), testOptions).outcome; v != nil {
				got = v.Reason
			}
			if got != row.want {
				t.Errorf("outcome %q, want %q", got, row.want)
			}
		})
	}
}

// A Job of no completions ends at once, without Pods. It's the only one that may end suspended, and
// without a start time.
func TestNoCompletions(t *testing.T) {
	for _, row := range []struct {
		name    string
		job     *batchv1.Job
		started bool
	}{
		{"plain", aJob(sized(2, 0)), true},
		{"indexed", aJob(sized(2, 0), indexed), true},
		{"with a limit per index", aJob(sized(2, 0), indexLimit(1)), true},
		{"suspended", aJob(sized(2, 0), suspended), false},
		{"indexed and suspended", aJob(sized(2, 0), indexed, suspended), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := Compute(snap(row.job, 5), testOptions)
			if len(p.Create) != 0 {
				t.Fatalf("creates %d Pods", len(p.Create))
			}
			s := p.Record(Result{}).Settle(nil)
			if got := conditionTypes(s.Status); !slices.Equal(got, []string{"SuccessCriteriaMet=True", "Complete=True"}) {
				t.Errorf("conditions %v", got)
			}
			if (s.Status.StartTime != nil) != row.started || !s.Status.CompletionTime.Equal(at(5)) {
				t.Errorf("started %v, completed %v", s.Status.StartTime, s.Status.CompletionTime)
			}
		})
	}
}

// An API server refuses an end before the start, as a clock gives it that was set back meanwhile.
func TestEndAfterTheClockWasSetBack(t *testing.T) {
	job := aJob(sized(1, 1), func(j *batchv1.Job) { j.Status.StartTime = at(3600) })
	a := Compute(snap(job, 5, aPod("a", succeeded)), testOptions).Record(Result{})
	s := a.Settle(allOf(a.Untrack))
	if s.Finished == nil || !s.Status.CompletionTime.Equal(at(3600)) {
		t.Errorf("it ends at %v, though it started at %v: %v", s.Status.CompletionTime, at(3600), conditionTypes(s.Status))
	}
}

// A Job ends in two steps: the interim condition is written before the Pods are untracked, the
// terminal one when all of them have ended.
func TestJobEndsInTwoSteps(t *testing.T) {
	p := Compute(snap(aJob(), 5, aPod("a", succeeded)), testOptions)
	a := p.Record(Result{})
	if got := conditionTypes(a.Status); len(got) != 1 || got[0] != "SuccessCriteriaMet=True" {
		t.Fatalf("first write has %v", got)
	}
	if len(a.Untrack) != 1 || a.Status.UncountedTerminatedPods.Succeeded[0] != "a" {
		t.Fatalf("first write lists %v, releases %v", a.Status.UncountedTerminatedPods, a.Untrack)
	}
	s := a.Settle(allOf(a.Untrack))
	if s.Finished == nil || s.Finished.Type != batchv1.JobComplete || s.Finished.Message != "Reached expected number of succeeded pods" {
		t.Fatalf("second write finishes with %v", s.Finished)
	}
	if s.Status.Succeeded != 1 || !s.Status.CompletionTime.Equal(at(5)) {
		t.Errorf("succeeded %d at %v", s.Status.Succeeded, s.Status.CompletionTime)
	}
	if len(s.Events) != 1 || s.Events[0].Reason != "Completed" {
		t.Errorf("events %v", s.Events)
	}
}

func TestTerminalConditionWaits(t *testing.T) {
	tooMany := func(j *batchv1.Job) { j.Spec.BackoffLimit = ptr.To[int32](0) }
	for _, row := range []struct {
		name    string
		pods    []*corev1.Pod
		deleted []string
		release bool // whether the releases succeed
		want    bool
	}{
		{"nothing left", []*corev1.Pod{aPod("a", failed)}, nil, true, true},
		{"a release failed", []*corev1.Pod{aPod("a", failed)}, nil, false, false},
		{"a Pod is still terminating", []*corev1.Pod{aPod("a", failed), aPod("b", running, deletedAt(0))}, nil, true, false},
		{"a Pod was deleted just now", []*corev1.Pod{aPod("a", failed), aPod("b", running)}, []string{"b"}, true, false},
		{"a Pod couldn't be deleted", []*corev1.Pod{aPod("a", failed), aPod("b", running)}, nil, true, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := Compute(snap(aJob(sized(2, 2), tooMany), 0, row.pods...), testOptions).Record(Result{Deleted: uids(row.deleted...)})
			untracked := uids()
			if row.release {
				untracked = allOf(a.Untrack)
			}
			if got := a.Settle(untracked).Finished != nil; got != row.want {
				t.Errorf("finished: %v, want %v", got, row.want)
			}
		})
	}
}

// What a Job doesn't need any more after it has succeeded never counts as failed, also if the
// controller is killed after it was deleted: here that would even fail the Job.
func TestSuccessGivesUpTheRest(t *testing.T) {
	job := aJob(indexed, sized(2, 2), func(j *batchv1.Job) {
		j.Spec.BackoffLimit = ptr.To[int32](0)
		j.Spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededCount: ptr.To[int32](1)}}}
	})
	winner, rest := aPod("a", index(0), succeeded), aPod("b", index(1), running)
	p := Compute(snap(job, 5, winner, rest), testOptions)
	if len(p.Delete) != 1 || p.Delete[0].Pod.Name != "b" || !p.Delete[0].Untrack {
		t.Fatalf("deletes %+v", p.Delete)
	}
	a := p.Record(Result{Deleted: uids("b")})
	if len(a.Untrack) != 1 || a.Untrack[0].Name != "a" {
		t.Errorf("untracks %v, though b is untracked already", a.Untrack)
	}
	killed := Compute(snap(job, 5, winner, aPod("b", index(1), running, untracked, deletedAt(5))), testOptions)
	again := killed.Record(Result{})
	if got := conditionTypes(again.Status); len(got) != 1 || got[0] != "SuccessCriteriaMet=True" || len(again.Status.UncountedTerminatedPods.Failed) != 0 {
		t.Errorf("after a kill: %v, failed %v", got, again.Status.UncountedTerminatedPods.Failed)
	}
}

// What somebody else has recorded is repeated up to a length.
func TestWhatIsRecordedIsCut(t *testing.T) {
	job := aJob(since)
	job.Status.Conditions = []batchv1.JobCondition{newCondition(batchv1.JobFailureTarget, corev1.ConditionTrue,
		strings.Repeat("R", 1<<20), strings.Repeat("m", 1<<20), noon)}
	_, record := synced(job, false)
	settled := record.Settle(nil)
	for _, e := range settled.Events {
		if len(e.Reason) > text.MaxReason || len(e.Message) > text.MaxMessage {
			t.Errorf("an event with a reason of %d and a message of %d bytes", len(e.Reason), len(e.Message))
		}
	}
	if c := findCondition(settled.Status.Conditions, batchv1.JobFailed); c == nil || len(settled.Events) == 0 || len(c.Reason) > text.MaxReason || len(c.Message) > text.MaxMessage {
		t.Errorf("the end is %v", c != nil)
	}
}
