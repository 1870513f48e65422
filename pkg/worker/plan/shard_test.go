package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/intervals"
)

// aShard is a Job of ten indexes that has those indexes here, and has taken note of the observed
// ones.
func aShard(assigned, observed string, edits ...func(*batchv1.Job)) *batchv1.Job {
	return aJob(append([]func(*batchv1.Job){sized(3, 10), indexed, annotated(assigned, observed)}, edits...)...)
}

func annotated(assigned, observed string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Spec.ManagedBy = ptr.To(v1alpha1.ManagedByWorker)
		j.Annotations = map[string]string{v1alpha1.AnnotationIndexes: assigned, v1alpha1.AnnotationIndexesObserved: observed}
	}
}

func managedBy(controller *string) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Spec.ManagedBy = controller }
}

func without(annotation string) func(*batchv1.Job) {
	return func(j *batchv1.Job) { delete(j.Annotations, annotation) }
}

func parallelism(n int32) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Spec.Parallelism = &n }
}

func completed(indexes string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status.CompletedIndexes = indexes
		j.Status.Succeeded = int32(intervals.ParseLenient(indexes, 10).Len())
	}
}

// carryOut pretends that all requests of the plan were accepted.
func carryOut(p *Plan) *Record {
	done := Result{Created: len(p.Create), Deleted: sets.New[types.UID]()}
	for _, d := range p.Delete {
		done.Deleted.Insert(d.Pod.UID)
	}
	return p.Record(done)
}

func TestShard(t *testing.T) {
	pods := func(p ...*corev1.Pod) []*corev1.Pod { return p }
	const same = "as it was"
	for _, row := range []struct {
		name     string
		job      *batchv1.Job
		pods     []*corev1.Pod
		create   []int
		delete   []string
		observed string
	}{
		{"only its indexes start", aShard("3,7", "3,7"), nil, []int{3, 7}, nil, same},
		{"no more than parallelism", aShard("3-9", "3-9"), nil, []int{3, 4, 5}, nil, same},
		{"an empty shard", aShard("", ""), nil, nil, nil, same},
		{"completed ones don't start", aShard("3-5", "3-5", completed("3,4")), nil, []int{5}, nil, same},
		{"a new index waits until it is observed", aShard("3,4", "3"), nil, []int{3}, nil, "3,4"},
		{"nothing is observed yet", aShard("3,4", "", without(v1alpha1.AnnotationIndexesObserved)), nil, nil, nil, "3,4"},
		{"an index that has left doesn't start", aShard("3", "3,4"), nil, []int{3}, nil, "3"},
		{"a running Pod goes on", aShard("3", "3,4"), pods(aPod("a", index(4), running)), []int{3}, nil, same},
		{"one that isn't even scheduled, too", aShard("", "4"), pods(aPod("a", index(4))), nil, nil, same},
		{"and a terminating one", aShard("3", "3,4", completed("3")), pods(aPod("a", index(4), running, untracked, deletedAt(0))), nil, nil, same},
		{"an untracked one", aShard("", "4"), pods(aPod("a", index(4), running, untracked)), nil, nil, same},
		{"its success settles the index", aShard("", "4"), pods(aPod("a", index(4), succeeded)), nil, nil, ""},
		{"a failure is counted here", aShard("", "4"), pods(aPod("a", index(4), failed)), nil, nil, same},
		{"and then it isn't retried here", aShard("", "4"), pods(aPod("a", index(4), failed, untracked)), nil, nil, ""},
		{"a failure waits for its replacement here", aShard("", "4", indexLimit(1)), pods(aPod("a", index(4), failed, exited(1, -600))), []int{4}, nil, same},
		{"also during its back-off", aShard("", "4", indexLimit(1)), pods(aPod("a", index(4), failed)), nil, nil, same},
		{"the last failure of an index settles it", aShard("", "4", indexLimit(0)), pods(aPod("a", index(4), failed)), nil, nil, ""},
		{"it holds its place", aShard("5-9", "3,5-9"), pods(aPod("a", index(3), running), aPod("b", index(5), running)), []int{6}, nil, same},
		{"lowered parallelism spares those that have left", aShard("5,6", "3-6", parallelism(1)),
			pods(aPod("a", index(3), running), aPod("b", index(4)), aPod("c", index(5), running), aPod("d", index(6))), nil, []string{"d"}, same},
		{"with as many as may run, none is surplus", aShard("5,6", "3-6", parallelism(2)),
			pods(aPod("a", index(3), running), aPod("b", index(4)), aPod("c", index(5), running), aPod("d", index(6))), nil, nil, same},
		{"a suspension stops them all", aShard("5", "3,5", suspended), pods(aPod("a", index(3), running), aPod("b", index(5))), nil, []string{"a", "b"}, same},
		{"a second Pod of an index goes", aShard("", "3"), pods(aPod("a", index(3), running), aPod("b", index(3))), nil, []string{"b"}, same},
		{"indexes beyond the completions don't count", aShard("8-2147483647", "8-2147483647"), nil, []int{8, 9}, nil, same},
		{"nor Pods of theirs", aShard("8,9", "8,9", parallelism(2)), pods(aPod("a", index(10), running)), nil, []string{"a"}, "8-10"},
		{"an index that no status can have isn't written", aShard("", ""), pods(aPod("a", index(1<<31), running)), nil, []string{"a"}, same},
		{"a Pod of an index that was never ours", aShard("", ""), pods(aPod("a", index(2), running)), nil, nil, "2"},
		{"damaged notes are written anew", aShard("3", "x"), pods(aPod("a", index(4), running)), nil, nil, "3,4"},
		{"a Job of the built-in's, in drop-in mode", aShard("3", "3", managedBy(nil)), nil, []int{0, 1, 2}, nil, same},
		{"also one that says so", aShard("3", "3", managedBy(ptr.To(batchv1.JobControllerName))), nil, []int{0, 1, 2}, nil, same},
		{"without indexes, it's no shard", aJob(sized(2, 3), annotated("0", "0")), nil, []int{noIndex, noIndex}, nil, same},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := Compute(snap(row.job, 0, row.pods...), testOptions)
			var create []int
			for _, made := range p.Create {
				create = append(create, CompletionIndex(made()))
			}
			if !slices.Equal(create, row.create) {
				t.Errorf("creates %v, want %v", create, row.create)
			}
			var deleted []string
			for _, d := range p.Delete {
				deleted = append(deleted, d.Pod.Name)
			}
			if slices.Sort(deleted); !slices.Equal(deleted, row.delete) {
				t.Errorf("deletes %v, want %v", deleted, row.delete)
			}
			if got := ptr.Deref(carryOut(p).Observed, same); got != row.observed {
				t.Errorf("observes %q, want %q", got, row.observed)
			}
			if problem := p.ShardProblem(); problem != "" {
				t.Error(problem)
			}
		})
	}
}

// What can't be used starts nothing, stops nothing, and changes nothing.
func TestShardWithAProblem(t *testing.T) {
	many := intervals.Set{}.String()
	for i := range 30_000 {
		many += fmt.Sprintf("%d,", 2*i)
	}
	many += "60000"
	for name, row := range map[string]struct {
		job  *batchv1.Job
		want string
	}{
		"not a list of indexes":     {aShard("all", "3,4"), `can't be read: "all" isn't an index`},
		"out of order":              {aShard("4,3", "3,4"), "can't be read: index 3 is out of order"},
		"longer than any list":      {aShard(strings.Repeat("7", 1<<20), "3,4"), "can't be read: text is too long"},
		"too long for two of them":  {aShard(many, "3,4"), "is too long to be taken note of"},
		"removed from a shard":      {aShard("", "3,4", without(v1alpha1.AnnotationIndexes)), "was removed"},
		"neither, but lower limits": {aShard("x", "3,4", parallelism(0)), "can't be read"},
	} {
		t.Run(name, func(t *testing.T) {
			row.job.Status.StartTime = at(0)
			p := Compute(snap(row.job, 0, aPod("a", index(3), running)), testOptions)
			r := carryOut(p)
			if len(p.Create)+len(p.Delete) > 0 || r.Observed != nil || r.More || p.More || p.Wake != 0 {
				t.Errorf("plan %+v, record %+v", p, r)
			}
			problem := p.ShardProblem()
			if !strings.Contains(problem, row.want) || !strings.Contains(problem, v1alpha1.AnnotationIndexes) || len(problem) > 1000 {
				t.Errorf("problem %q", problem)
			}
		})
	}
}

// A shard is synced again at once if it may start more than it did before, and never for nothing.
func TestAShardIsSyncedAgainOnceItHasGrown(t *testing.T) {
	for _, row := range []struct {
		assigned, observed string
		more               bool
	}{{"3,4", "3", true}, {"3", "3,4", false}, {"3,4", "3,4", false}} {
		if r := carryOut(Compute(snap(aShard(row.assigned, row.observed), 0), testOptions)); r.More != row.more {
			t.Errorf("%+v: %v", row, r.More)
		}
	}
}

// A shard never ends because of what it has done, but by what the hub has written, or by a limit.
func TestEndOfAShard(t *testing.T) {
	all := intervals.Range(0, 10).String()
	anySuccess := func(j *batchv1.Job) {
		j.Spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededCount: ptr.To[int32](1)}}}
	}
	failJob := policy(onExit(batchv1.PodFailurePolicyActionFailJob, 42))
	failedIndexes := func(text string) func(*batchv1.Job) {
		return func(j *batchv1.Job) { j.Status.FailedIndexes = &text }
	}
	for _, row := range []struct {
		name   string
		job    *batchv1.Job
		pods   []*corev1.Pod
		reason string
	}{
		{"all that it has is completed", aShard("0-4", "0-4", completed("0-4")), nil, ""},
		{"all there is is completed", aShard(all, all, completed(all)), nil, ""},
		{"all settled, some failed", aShard(all, all, indexLimit(0), completed("1-9"), failedIndexes("0")), nil, ""},
		{"a successPolicy is met", aShard(all, all, anySuccess, completed("3")), nil, ""},
		{"the back-off limit", aShard("0-4", "0-4", func(j *batchv1.Job) { j.Spec.BackoffLimit = ptr.To[int32](0) }),
			[]*corev1.Pod{aPod("a", index(0), failed)}, batchv1.JobReasonBackoffLimitExceeded},
		{"a failure of an index that has left counts", aShard("", "3", func(j *batchv1.Job) { j.Spec.BackoffLimit = ptr.To[int32](0) }),
			[]*corev1.Pod{aPod("a", index(3), failed)}, batchv1.JobReasonBackoffLimitExceeded},
		{"too many failed indexes", aShard("0-4", "0-4", indexLimit(0), failedIndexes("0,1"), func(j *batchv1.Job) { j.Spec.MaxFailedIndexes = ptr.To[int32](1) }),
			nil, batchv1.JobReasonMaxFailedIndexesExceeded},
		{"one of the built-in's ends by itself", aShard("0-4", "", managedBy(nil), completed(all)), nil, batchv1.JobReasonCompletionsReached},
		{"FailJob", aShard("0-4", "0-4", failJob), []*corev1.Pod{aPod("a", index(0), exited(42, 0))}, batchv1.JobReasonPodFailurePolicy},
		{"the deadline", aShard("0-4", "0-4", func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = ptr.To[int64](0) }), nil, batchv1.JobReasonDeadlineExceeded},
		{"the hub's success", aShard("0-4", "0-4", withCondition(batchv1.JobSuccessCriteriaMet, "Hub")), nil, "Hub"},
		{"the hub's failure", aShard("0-4", "0-4", withCondition(batchv1.JobFailureTarget, "Hub")), nil, "Hub"},
		{"the hub's success of a suspended one", aShard("0-4", "0-4", suspended, withCondition(batchv1.JobSuccessCriteriaMet, "Hub")), nil, "Hub"},
		{"the hub's success of one with a problem", aShard("x", "0-4", withCondition(batchv1.JobSuccessCriteriaMet, "Hub")), nil, "Hub"},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := Compute(snap(row.job, 0, row.pods...), testOptions)
			r := carryOut(p)
			s := r.Settle(allOf(r.Untrack))
			after := row.job.DeepCopy()
			after.Status = s.Status
			end := Finished(after)
			switch {
			case end == nil && row.reason != "" || end != nil && end.Reason != row.reason:
				t.Errorf("ends with %+v, want %q", end, row.reason)
			case end != nil && (s.Status.StartTime == nil || strings.HasPrefix(row.reason, "Hub") && end.Message != "because"):
				t.Errorf("status %+v", s.Status)
			case end == nil && (p.Wake != 0 || p.More || r.More):
				t.Errorf("it doesn't idle: %v, %v, %v", p.Wake, p.More, r.More)
			}
		})
	}
}

// An index that may have a Pod which nobody has seen yet isn't given back, unless it is settled.
func TestUnansweredIndexesAreKept(t *testing.T) {
	s := snap(aShard("5", "3-5", completed("4")), 0)
	s.Unanswered = intervals.Of(3, 4)
	p := Compute(s, testOptions)
	if got := ptr.Deref(carryOut(p).Observed, "as it was"); got != "3,5" {
		t.Errorf("observes %q", got)
	}
	if len(p.Create) != 1 || CompletionIndex(p.Create[0]()) != 5 {
		t.Errorf("creates %d Pods", len(p.Create))
	}
}

// A tenant may give his Pod any index. One that no Job has is none.
func TestIndexesThatNoJobHas(t *testing.T) {
	for _, i := range []int{math.MaxInt, math.MaxInt - 1, math.MaxUint32, math.MaxInt32} {
		job := aShard("5-9", "5-9", completed("5"), parallelism(1))
		p := Compute(snap(job, 0, aPod("a", index(i), deletedAt(-60))), testOptions)
		if len(p.Create) != 1 || CompletionIndex(p.Create[0]()) != 6 {
			t.Errorf("%d: creates %d Pods", i, len(p.Create))
		}
		p = Compute(snap(job, 0, aPod("a", index(i), running)), testOptions)
		if len(p.Create) != 0 || len(p.Delete) != 1 {
			t.Errorf("%d: creates %d Pods, and deletes %d", i, len(p.Create), len(p.Delete))
		}
		if at := CompletionIndex(aPod("a", index(i))); at != noIndex {
			t.Errorf("%d is index %d", i, at)
		}
	}
}
