package dispatch_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// liesFor is how long the worker lies; in a hot loop there would be hundreds of requests in it.
const liesFor = 3 * time.Second

// falsehood is a Job, what its worker said of it while it was honest, and the lie.
type falsehood struct {
	name    string
	options []rigtest.Option
	before  func() batchv1.JobStatus
	lie     ferrytest.Lie
	// rule that the lie breaks; empty: nobody listens any more, as the Job has ended on the hub.
	rule mirror.Rule
}

func fiveCompletions(j *batchv1.Job) {
	j.Spec.Completions, j.Spec.Parallelism = ptr.To[int32](5), ptr.To[int32](2)
}

func halfDone() batchv1.JobStatus {
	s := ferrytest.Started(1)
	s.Succeeded, s.Failed = 3, 2
	return s
}

func halfDoneIndexed() batchv1.JobStatus {
	s := halfDone()
	s.CompletedIndexes = "0-2"
	return s
}

func complete() batchv1.JobStatus {
	s := ferrytest.Started(0)
	s.Succeeded, s.CompletionTime = 5, s.StartTime
	s.Conditions = []batchv1.JobCondition{condition(batchv1.JobSuccessCriteriaMet), condition(batchv1.JobComplete)}
	return s
}

func aboutToFail() batchv1.JobStatus {
	s := halfDone()
	s.Conditions = []batchv1.JobCondition{condition(batchv1.JobFailureTarget)}
	return s
}

func condition(kind batchv1.JobConditionType) batchv1.JobCondition {
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	return batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now}
}

func conditions(kinds ...batchv1.JobConditionType) []batchv1.JobCondition {
	var all []batchv1.JobCondition
	for _, kind := range kinds {
		all = append(all, condition(kind))
	}
	return all
}

var falsehoods = []falsehood{
	{"failed-falls", nil, halfDone, func(s *batchv1.JobStatus) { s.Failed = 1 }, "failed-never-falls"},
	{"succeeded-falls", nil, halfDone, func(s *batchv1.JobStatus) { s.Succeeded = 1 }, "succeeded-never-falls"},
	{"index-withdrawn", []rigtest.Option{rigtest.Indexed(5)}, halfDoneIndexed,
		func(s *batchv1.JobStatus) { s.CompletedIndexes = "0,2-3" }, "completed-indexes-grow"},
	{"index-malformed", []rigtest.Option{rigtest.Indexed(5)}, halfDoneIndexed,
		func(s *batchv1.JobStatus) { s.CompletedIndexes = "4-2,-1,x" }, "completed-indexes-format"},
	{"index-beyond", []rigtest.Option{rigtest.Indexed(5)}, halfDoneIndexed,
		func(s *batchv1.JobStatus) { s.CompletedIndexes = "0-2,7" }, "indexes-within-completions"},
	{"not-indexed", nil, halfDone, func(s *batchv1.JobStatus) { s.CompletedIndexes = "0-2" }, "completed-indexes-mode"},
	{"negative", nil, halfDone, func(s *batchv1.JobStatus) { s.Active = -1 }, "counters-non-negative"},
	{"megabyte", nil, halfDone, func(s *batchv1.JobStatus) {
		huge := condition(batchv1.JobComplete)
		huge.Message = strings.Repeat("x", 1<<20)
		s.Conditions = append(s.Conditions, huge)
	}, "conditions-bounded"},
	{"many-conditions", nil, halfDone, func(s *batchv1.JobStatus) {
		for i := range 1000 {
			s.Conditions = append(s.Conditions, condition(batchv1.JobConditionType(fmt.Sprintf("Odd%d", i))))
		}
	}, "conditions-bounded"},
	{"from-the-future", nil, halfDone, func(s *batchv1.JobStatus) {
		s.StartTime = ptr.To(metav1.NewTime(time.Now().Add(48 * time.Hour)))
	}, ""},
	{"both-outcomes", nil, halfDone, func(s *batchv1.JobStatus) {
		s.Conditions = conditions(batchv1.JobComplete, batchv1.JobFailed)
	}, "outcome-exclusive"},
	{"changes-its-mind", nil, aboutToFail, func(s *batchv1.JobStatus) {
		s.Conditions = conditions(batchv1.JobSuccessCriteriaMet, batchv1.JobComplete)
		s.Active, s.Ready, s.CompletionTime = 0, nil, s.StartTime
	}, "outcome-final"},
	{"flips-the-end", nil, complete, func(s *batchv1.JobStatus) {
		s.Conditions = conditions(batchv1.JobFailureTarget, batchv1.JobFailed)
		s.CompletionTime = nil
	}, ""},
}

// Whatever a worker reports, the hub Job keeps its last valid status, an event names the rule, and
// nobody gets busy over it.
func TestLyingWorker(t *testing.T) {
	f := ferrytest.For(t)
	m := f.RunManager()
	liar := f.RegisterPuppet()
	f.LeaveWorker(ferrytest.PuppetName)
	honest := map[string]*batchv1.JobStatus{}
	for _, c := range falsehoods {
		f.SubmitToPuppet(c.name, append([]rigtest.Option{fiveCompletions}, c.options...)...)
		before := c.before()
		f.Play(c.name, before)
		shownOnHub := f.HubJobUntil(c.name, func(j *batchv1.Job) bool { return show(&j.Status) == show(&before) })
		honest[c.name] = &shownOnHub.Status
	}
	for _, c := range falsehoods {
		rejected := m.Metric("jobferry_status_rejected_total", "rule", string(c.rule))
		liar.Report(f.NS, c.name, c.lie)
		reportAgain(f, c.name)
		if c.rule == "" {
			continue
		}
		f.EventUntil(c.name, "StatusRejected", "rule "+string(c.rule)+":")
		if now := m.Metric("jobferry_status_rejected_total", "rule", string(c.rule)); now <= rejected {
			t.Errorf("%s: jobferry_status_rejected_total{rule=%q} stays %v", c.name, c.rule, now)
		}
	}
	expectQuiet(t, f, liesFor)
	for _, c := range falsehoods {
		now := f.HubJobUntil(c.name, ferrytest.Exists)
		if differ := differences(honest[c.name], &now.Status); differ != "" || !now.Status.StartTime.Equal(honest[c.name].StartTime) {
			t.Errorf("%s: was, and is:\n%s", c.name, differ)
		}
	}
	for _, c := range falsehoods {
		liar.Report(f.NS, c.name, nil)
		reportAgain(f, c.name)
	}
	f.PatchIn(f.Cluster(ferrytest.PuppetName), types.MergePatchType, "failed-falls", `{"status":{"active":0,"ready":0,"succeeded":5,
		"completionTime":"`+time.Now().UTC().Format(time.RFC3339)+`",
		"conditions":[{"type":"SuccessCriteriaMet","status":"True"},{"type":"Complete","status":"True"}]}}`, "status")
	f.HubJobUntil("failed-falls", rigtest.Complete)
}

// reportAgain makes the worker's API server send a mirror once more.
func reportAgain(f *ferrytest.Ferry, name string) {
	f.PatchMirror(ferrytest.PuppetName, name, fmt.Sprintf(`{"metadata":{"annotations":{"touched":"%d"}}}`, time.Now().UnixNano()))
}

// expectQuiet watches for requests of the manager about this test's Jobs over a time.
func expectQuiet(t *testing.T, f *ferrytest.Ferry, window time.Duration) {
	t.Helper()
	began := time.Now()
	select {
	case <-time.After(window):
	case <-f.Context().Done():
	}
	for _, c := range []*rig.Cluster{f.Hub, f.Cluster(ferrytest.PuppetName)} {
		requests, err := c.Requests()
		if err != nil {
			t.Fatal(err)
		}
		counts := rig.CountBy(requests, func(r rig.Request) string {
			if !strings.HasPrefix(r.UserAgent, ferrytest.UserAgent) || r.Object.Namespace != f.NS || r.Received.Time.Before(began) {
				return ""
			}
			return r.Verb + " " + r.Object.Resource + "/" + r.Object.Subresource
		})
		if len(counts) > 0 {
			t.Errorf("%s got in %s of lies: %v", c.Name(), window, counts)
		}
	}
}
