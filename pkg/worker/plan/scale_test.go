package plan

import (
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
)

func uids(names ...string) sets.Set[types.UID] {
	out := sets.New[types.UID]()
	for _, n := range names {
		out.Insert(types.UID(n))
	}
	return out
}

func allOf(pods []*corev1.Pod) sets.Set[types.UID] {
	out := sets.New[types.UID]()
	for _, p := range pods {
		out.Insert(p.UID)
	}
	return out
}

func TestScale(t *testing.T) {
	pods := func(p ...*corev1.Pod) []*corev1.Pod { return p }
	counted := func(succeeded int32) func(*batchv1.Job) {
		return func(j *batchv1.Job) { j.Status.Succeeded = succeeded }
	}
	leaving := func(j *batchv1.Job) { j.DeletionTimestamp = at(0) }
	for _, row := range []struct {
		name   string
		job    *batchv1.Job
		pods   []*corev1.Pod
		create int
		delete []string
	}{
		{"a new Job", aJob(sized(2, 3)), nil, 2, nil},
		{"no more than completions", aJob(sized(5, 3)), nil, 3, nil},
		{"no more than what is left", aJob(sized(3, 4), counted(2)), nil, 2, nil},
		{"none with a parallelism of 0", aJob(sized(0, 3)), nil, 0, nil},
		{"parallelism was raised", aJob(sized(3, 3)), pods(aPod("a", running)), 2, nil},
		{"parallelism was lowered", aJob(sized(1, 3)), pods(aPod("a", running), aPod("b")), 0, []string{"b"}},
		{"at most so many per sync", aJob(sized(9, 9)), nil, testOptions.MaxPodCreateDeletePerSync, nil},
		{"a work queue", aJob(workQueue(2)), nil, 2, nil},
		{"a work queue being emptied", aJob(workQueue(3)), pods(aPod("a", succeeded), aPod("b", running)), 0, nil},
		{"suspended", aJob(sized(2, 2), suspended), pods(aPod("a", running), aPod("b")), 0, []string{"a", "b"}},
		{"being deleted", aJob(sized(2, 2), leaving), nil, 0, nil},
		{"a terminating Pod is replaced", aJob(sized(2, 5)), pods(aPod("a", running, deletedAt(-60)), aPod("b", running)), 1, nil},
		{"unless only failed ones are", aJob(sized(2, 5), onlyFailedReplaced), pods(aPod("a", running, deletedAt(-60)), aPod("b", running)), 0, nil},
		{"nor with a podFailurePolicy", aJob(sized(2, 5), policy()), pods(aPod("a", running, deletedAt(-60)), aPod("b", running)), 0, nil},
		{"indexed: a second Pod of an index goes", aJob(sized(2, 2), indexed), pods(aPod("a", index(0), running), aPod("b", index(0)), aPod("c", index(1))), 0, []string{"b"}},
		{"indexed: Pods without a usable index go", aJob(sized(3, 3), indexed), pods(aPod("a", index(0)), aPod("b"), aPod("c", index(3))), 0, []string{"b", "c"}},
		{"an untracked Pod runs on", aJob(sized(2, 2)), pods(aPod("a", running, untracked)), 1, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := Compute(snap(row.job, 0, row.pods...), testOptions)
			if len(p.Create) != row.create {
				t.Errorf("creates %d, want %d", len(p.Create), row.create)
			}
			var deleted []string
			for _, d := range p.Delete {
				deleted = append(deleted, d.Pod.Name)
				if !d.Untrack {
					t.Errorf("%s would be counted as failed", d.Pod.Name)
				}
			}
			if slices.Sort(deleted); !slices.Equal(deleted, row.delete) {
				t.Errorf("deletes %v, want %v", deleted, row.delete)
			}
		})
	}
}

func TestPendingIndexes(t *testing.T) {
	done := func(text string) func(*batchv1.Job) { return func(j *batchv1.Job) { j.Status.CompletedIndexes = text } }
	given := func(text string) func(*batchv1.Job) { return func(j *batchv1.Job) { j.Status.FailedIndexes = &text } }
	for _, row := range []struct {
		name string
		job  *batchv1.Job
		pods []*corev1.Pod
		want []int
	}{
		{"the lowest first", aJob(sized(2, 9), indexed), nil, []int{0, 1}},
		{"succeeded ones are passed over", aJob(sized(2, 9), indexed, done("0-2,4")), nil, []int{3, 5}},
		{"active ones are, too", aJob(sized(3, 9), indexed), []*corev1.Pod{aPod("a", index(1))}, []int{0, 2}},
		{"failed ones are, too", aJob(sized(2, 9), indexLimit(0), given("0,1")), nil, []int{2, 3}},
		{"an index just succeeded", aJob(sized(1, 9), indexed), []*corev1.Pod{aPod("a", index(0), succeeded)}, []int{1}},
		{"completions were raised", aJob(sized(4, 4), indexed, done("0-2")), nil, []int{3}},
		{"a terminating one is replaced", aJob(sized(1, 9), indexed), []*corev1.Pod{aPod("a", index(0), deletedAt(-60))}, []int{0}},
		{"unless only failed ones are", aJob(sized(2, 9), indexed, onlyFailedReplaced), []*corev1.Pod{aPod("a", index(0), deletedAt(-60))}, []int{1}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var got []int
			for _, c := range Compute(snap(row.job, 0, row.pods...), testOptions).Create {
				got = append(got, CompletionIndex(c()))
			}
			if !slices.Equal(got, row.want) {
				t.Errorf("creates indexes %v, want %v", got, row.want)
			}
		})
	}
}

func TestExpendability(t *testing.T) {
	manyRestarts := func(p *corev1.Pod) { isReady(0)(p); restarted(5)(p) }
	// From the first to go to the last.
	order := []*corev1.Pod{
		aPod("no node"),
		aPod("pending", onNode),
		aPod("not ready", running),
		aPod("ready since a moment", isReady(50)),
		aPod("restarted", manyRestarts),
		aPod("young", isReady(0), created(20)),
		aPod("old", isReady(0), created(10)),
	}
	for n := range order {
		shuffled := append(slices.Clone(order[n:]), order[:n]...)
		for i, d := range Compute(snap(aJob(workQueue(0)), 60, shuffled...), Options{MaxPodCreateDeletePerSync: 100}).Delete {
			if d.Pod != order[i] {
				t.Errorf("started with %q: number %d to go is %q, want %q", order[n].Name, i, d.Pod.Name, order[i].Name)
			}
		}
	}
}

func TestLowestIndexGoesFirst(t *testing.T) {
	job := aJob(sized(1, 3), indexed)
	doomed := Compute(snap(job, 0, aPod("c", index(2)), aPod("a", index(0)), aPod("b", index(1))), testOptions).Delete
	if len(doomed) != 2 || doomed[0].Pod.Name != "a" || doomed[1].Pod.Name != "b" {
		t.Errorf("deletes %v", doomed)
	}
}

func TestWakeUps(t *testing.T) {
	deadline := func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds, j.Status.StartTime = ptr.To[int64](100), at(0) }
	for _, row := range []struct {
		name string
		job  *batchv1.Job
		pods []*corev1.Pod
		want time.Duration
	}{
		{"nothing to wait for", aJob(), nil, 0},
		{"the deadline", aJob(deadline), nil, 95 * time.Second},
		{"the back-off", aJob(), []*corev1.Pod{aPod("a", exited(1, 3))}, 8 * time.Second},
		{"the sooner of the two", aJob(deadline), []*corev1.Pod{aPod("a", exited(1, 3))}, 8 * time.Second},
		{"the back-off doubles with each failure", aJob(), []*corev1.Pod{aPod("a", exited(1, -5)), aPod("b", exited(1, -14))}, 10 * time.Second},
		{"no deadline while suspended", aJob(deadline, suspended), nil, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := Compute(snap(row.job, 5, row.pods...), testOptions).Wake
			if got != row.want {
				t.Errorf("wakes after %v, want %v", got, row.want)
			}
		})
	}
}

// More than a sync may do is done at once, but what has to wait isn't more.
func TestMoreThanASyncMay(t *testing.T) {
	var failing, running []*corev1.Pod
	for i := range 9 {
		failing = append(failing, aPod(fmt.Sprintf("failed-%d", i), index(i), failures(0), exited(1, 3)))
		running = append(running, aPod(fmt.Sprintf("running-%d", i)))
	}
	for _, row := range []struct {
		name string
		job  *batchv1.Job
		pods []*corev1.Pod
		want bool
		wake time.Duration
	}{
		{"to create", aJob(sized(9, 9)), nil, true, 0},
		{"indexes to create", aJob(sized(9, 9), indexed), nil, true, 0},
		{"just as many to create", aJob(sized(5, 5)), nil, false, 0},
		{"to delete", aJob(sized(1, 9)), running, true, 0},
		{"just as many to delete", aJob(sized(4, 9)), running, false, 0},
		{"in back-off", aJob(sized(9, 9), indexLimit(5)), failing, false, 8 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := Compute(snap(row.job, 5, row.pods...), testOptions)
			if got.More != row.want {
				t.Errorf("more to do: %v, want %v", got.More, row.want)
			}
			if got.Wake != row.wake {
				t.Errorf("wakes after %v, want %v", got.Wake, row.wake)
			}
		})
	}
}
