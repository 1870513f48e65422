package mirror

import (
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/mirror/mirrortest"
	"github.com/jobferry/jobferry/pkg/util/text"
)

var (
	noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	now  = noon.Add(10 * time.Minute)
)

func job() *mirrortest.Job        { return mirrortest.New("job").Completions(5).Parallelism(2) }
func indexedJob() *mirrortest.Job { return job().Indexed(5).BackoffLimitPerIndex(1) }

// scaledTo is an elastic Job whose completions have changed.
func scaledTo(n int32) *mirrortest.Job {
	return job().Indexed(n).Parallelism(n).BackoffLimitPerIndex(1).Generation(2)
}

// Rows for what a worker may say: the mirror breaks exactly this rule.
var inputRows = []struct {
	rule   Rule
	hub    *mirrortest.Job
	mirror *mirrortest.Job
}{
	{"conditions-bounded", job(), job().Do(conditions(33, "x", ""))},
	{"conditions-bounded", job(), job().Do(conditions(1, "x", strings.Repeat("m", maxMessageLength+1)))},
	{"conditions-bounded", job(), job().Do(conditions(3, "x", strings.Repeat("m", maxMessageLength)))},
	{"conditions-bounded", job(), job().Do(conditions(1, batchv1.JobConditionType(strings.Repeat("t", 1<<20)), ""))},
	{"uncounted-bounded", job(), job().Started(noon).Do(uncounted(MaxUncountedPods + 1))},
	{"conditions-well-formed", job(), job().True(batchv1.JobComplete, "a", noon).Condition(batchv1.JobComplete, corev1.ConditionFalse, "b", noon)},
	{"conditions-well-formed", job(), job().Condition(batchv1.JobFailed, "Maybe", "", noon)},
	{"outcome-exclusive", job(), job().True(batchv1.JobComplete, "", noon).True(batchv1.JobFailed, "", noon)},
	{"outcome-exclusive", job(), job().True(batchv1.JobSuccessCriteriaMet, "", noon).True(batchv1.JobFailureTarget, "", noon)},
	{"counters-non-negative", job(), job().Pods(-1, 0, 0).Started(noon)},
	{"counters-non-negative", job(), job().Pods(1, 1, -1).Started(noon)},
	{"counters-non-negative", job(), job().Counted(0, -1).Started(noon)},
	{"completed-indexes-mode", job(), job().Started(noon).CompletedIndexes("0")},
	{"failed-indexes-mode", job().Indexed(5), job().Started(noon).FailedIndexes("0")},
	{"completed-indexes-format", indexedJob(), indexedJob().CompletedIndexes("2,1")},
	{"completed-indexes-format", indexedJob(), indexedJob().CompletedIndexes(strings.Repeat("0,", 1<<19))},
	{"failed-indexes-format", indexedJob(), indexedJob().FailedIndexes("x")},
	{"indexes-within-completions", indexedJob(), indexedJob().CompletedIndexes("3-5")},
	{"indexes-within-completions", indexedJob(), indexedJob().FailedIndexes("5")},
	{"indexes-disjoint", indexedJob(), indexedJob().CompletedIndexes("0-3").FailedIndexes("2,4")},
}

func uncounted(n int) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		listed := &batchv1.UncountedTerminatedPods{Succeeded: []types.UID{"s"}}
		for i := range n - 1 {
			listed.Failed = append(listed.Failed, types.UID(strconv.Itoa(i)))
		}
		j.Status.UncountedTerminatedPods = listed
	}
}

func conditions(n int, t batchv1.JobConditionType, message string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		for range n {
			j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: t, Message: message})
		}
	}
}

// Rows for the outcome: the hub has a status, would get the next one, and the mirror is what it
// comes from. The steps make most of these impossible; the rule must hold by itself.
var nextRows = []struct {
	rule              Rule
	hub, next, mirror *mirrortest.Job
}{
	{ruleOutcomeFinal, job().True(batchv1.JobFailureTarget, "", noon), job(), job()},
	{ruleOutcomeFinal, job().True(batchv1.JobSuccessCriteriaMet, "", noon), job().True(batchv1.JobSuccessCriteriaMet, "", noon), job()},
	{"failed-never-falls", job().Counted(0, 2), job().Counted(0, 1), nil},
	{"succeeded-never-falls", job().Counted(2, 0), job().Counted(1, 0), nil},
	{"succeeded-never-falls", indexedJob().Parallelism(5).Counted(2, 0), indexedJob().Counted(1, 0), nil},
	{"succeeded-never-falls", indexedJob().Generation(2).Counted(2, 0), indexedJob().Counted(1, 0), nil},
	{"completed-indexes-grow", indexedJob().CompletedIndexes("0-2"), indexedJob().CompletedIndexes("0,2-4"), nil},
	{"completed-indexes-grow", scaledTo(5).Counted(3, 0).CompletedIndexes("0-2"), indexedJob().Counted(2, 0).CompletedIndexes("0,1"), nil},
	{"failed-indexes-grow", indexedJob().FailedIndexes("1"), indexedJob().FailedIndexes("2"), nil},
	{"failed-indexes-grow", scaledTo(5).FailedIndexes("1"), indexedJob().FailedIndexes("2"), nil},
	{"ending-exclusive", job(), job().True(batchv1.JobSuccessCriteriaMet, "", noon).True(batchv1.JobFailureTarget, "", noon), nil},
	{"ending-exclusive", job(), finishedJob(batchv1.JobFailureTarget, batchv1.JobComplete), nil},
	{"interim-before-final", job(), finishedJob(batchv1.JobComplete), nil},
	{"interim-before-final", job(), finishedJob(batchv1.JobFailed), nil},
	{"finished-needs-start-time", job(), finishedJob(success.interim, success.final).Do(noStart), nil},
	{"finished-without-pods", job(), finishedJob(success.interim, success.final).Pods(1, 0, 0), nil},
	{"finished-without-pods", job(), finishedJob(success.interim, success.final).Pods(0, 0, 1), nil},
	{"finished-without-uncounted", job(), finishedJob(success.interim, success.final).Do(uncountedPods), nil},
	{"start-time-stays", job().Started(noon), job().Started(now), nil},
	{"start-time-stays", job().Started(noon), job(), nil},
	{"completion-time-with-complete", job(), job().Started(noon).Completed(now), nil},
	{"completion-time-with-complete", job(), finishedJob(success.interim, success.final).Do(noEnd), nil},
	{"completion-after-start", job(), finishedJob(success.interim, success.final).Started(now.Add(time.Hour)), nil},
	{"completion-time-stays", job().Completed(noon), finishedJob(success.interim, success.final), nil},
	{"ready-within-active", job(), job().Pods(1, 2, 0), nil},
	{"outcome-counters", job(), job().Pods(-1, -1, 0), nil},
	{"outcome-indexes", job(), job().CompletedIndexes("1"), nil},
	{"outcome-indexes", job().Indexed(5), job().FailedIndexes(""), nil},
	{"outcome-indexes", indexedJob(), indexedJob().CompletedIndexes("5"), nil},
	{"outcome-indexes", indexedJob(), indexedJob().CompletedIndexes("1").FailedIndexes("1"), nil},
	{"suspended-agrees", job(), job().True(batchv1.JobSuspended, "", noon), nil},
}

func finishedJob(types ...batchv1.JobConditionType) *mirrortest.Job {
	j := job().Started(noon).Pods(0, 0, 0)
	for _, t := range types {
		j.True(t, "", noon)
		if t == batchv1.JobComplete {
			j.Completed(now)
		}
	}
	return j
}

func noStart(j *batchv1.Job) { j.Status.StartTime = nil }
func noEnd(j *batchv1.Job)   { j.Status.CompletionTime = nil }
func uncountedPods(j *batchv1.Job) {
	j.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
}

func TestInputRules(t *testing.T) {
	for _, row := range inputRows {
		got := Reflect(row.hub.Obj(), row.mirror.Obj(), now)
		if v, ok := got.(Violation); !ok || v.Rule != row.rule || v.Message == "" {
			t.Errorf("%s: got %+v", row.rule, got)
		}
	}
}

func TestNextRules(t *testing.T) {
	for _, row := range nextRows {
		if row.mirror == nil {
			row.mirror = row.next
		}
		r := newReflection(row.hub.Obj(), row.mirror.Obj(), now)
		r.next = row.next.Obj().Status
		got, broken := firstBroken(nextRules, r)
		if !broken || got.Rule != row.rule || got.Message == "" {
			t.Errorf("%s: got %+v", row.rule, got)
		}
	}
}

func TestEveryRuleHasARow(t *testing.T) {
	rows := map[Rule]bool{}
	for _, row := range inputRows {
		rows[row.rule] = true
	}
	for _, row := range nextRows {
		rows[row.rule] = true
	}
	seen := map[Rule]int{}
	for _, row := range slices.Concat(inputRules, nextRules) {
		rule := row.name
		if !rows[rule] {
			t.Errorf("%s has no row", rule)
		}
		seen[rule]++
	}
	if seen[ruleOutcomeFinal] != 1 {
		t.Errorf("the tables have outcome-final %d times", seen[ruleOutcomeFinal])
	}
}

// TestUncountedPodsAreCheap: a worker lists very many Pods by short UIDs.
func TestUncountedPodsAreCheap(t *testing.T) {
	const most = 1 << 20
	hub, mirror := job().Obj(), job().Started(noon).Do(uncounted(500_000)).Obj()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	Reflect(hub, mirror, now)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > most {
		t.Errorf("%d KiB were allocated, at most %d KiB are allowed", took>>10, most>>10)
	}
}

// What's at the edge of a rule, and allowed.
func TestRulesLetPass(t *testing.T) {
	for name, row := range map[string]struct{ hub, mirror *mirrortest.Job }{
		"a clock that's years ahead":             {job(), job().Started(now.AddDate(9000, 0, 0))},
		"a clock that was never set":             {job(), job().Started(noon).Completed(time.Unix(-1, 0))},
		"a condition of an unknown type, twice":  {job(), job().Started(noon).True("example.com/A", "", noon).True("example.com/A", "", noon)},
		"as many uncounted Pods as are accepted": {job(), job().Started(noon).Do(uncounted(MaxUncountedPods))},
		"pairs of indexes written out":           {indexedJob(), indexedJob().Started(noon).CompletedIndexes("0,1").FailedIndexes("")},
		"elastic, scaled down": {
			scaledTo(2).Started(noon).Counted(5, 0).CompletedIndexes("0-4"),
			scaledTo(2).Started(noon).Counted(2, 0).CompletedIndexes("0,1"),
		},
	} {
		if v, ok := Reflect(row.hub.Obj(), row.mirror.Obj(), now).(Violation); ok {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func TestStaleCounters(t *testing.T) {
	stale := finishedJob(success.interim, success.final).Pods(0, 0, 1).Obj()
	graceOver := noon.Add(30 * time.Second)
	next, ok := Reflect(job().Obj(), stale, graceOver.Add(staleCountersAfter-time.Second)).(Next)
	if !ok || finished(&next.Status) || !ptr.Equal(next.Status.Terminating, ptr.To[int32](1)) {
		t.Errorf("before staleCountersAfter: got %+v", next)
	}
	next, ok = Reflect(job().Obj(), stale, graceOver.Add(staleCountersAfter)).(Next)
	if !ok || !finished(&next.Status) || !ptr.Equal(next.Status.Terminating, ptr.To[int32](0)) {
		t.Errorf("after staleCountersAfter: got %+v", next)
	}
}

// What a worker says about the end of a Job reaches the hub in one printable line of bounded
// length.
func TestTextsOfWorkersAreCleaned(t *testing.T) {
	m := finishedJob(success.interim, success.final).Obj()
	for i := range m.Status.Conditions {
		m.Status.Conditions[i].Reason = "Done\x1b[2J"
		m.Status.Conditions[i].Message = "all\nis \u202ewell\x00" + strings.Repeat("!", 5000)
	}
	next, ok := Reflect(job().Obj(), m, now).(Next)
	if !ok || len(next.Status.Conditions) != 2 {
		t.Fatalf("got %+v", next)
	}
	for _, c := range next.Status.Conditions {
		if c.Reason != "Done2J" || len(c.Message) != text.MaxMessage || !strings.HasPrefix(c.Message, "all is well !!!") {
			t.Errorf("%s: reason %q, message %q", c.Type, c.Reason, c.Message)
		}
	}
}

func timePtr(t time.Time) *metav1.Time { return ptr.To(metav1.NewTime(t)) }
