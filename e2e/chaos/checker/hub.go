package checker

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/chaos/story"
	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/manager/usage"
)

// observeHubJob takes in a hub Job.
func (c *Checker) observeHubJob(r *record, e Event) {
	if e.Gone {
		r.note(e.At, e.Where, "Job is gone")
		r.hub, r.homes = nil, nil
		if !r.deletes && !r.story.End.Gone {
			c.violate(e.At, Vanished, r, "the hub Job is gone, and nobody deleted it")
		}
		return
	}
	r.noteChange(e.At, e.Where, "Job", describeJob(e.Job))
	for _, m := range usage.Read(e.Job) {
		r.noteChange(e.At, e.Where, fmt.Sprintf("account of %s %.4s", m.Worker, m.UID), describeAccount(&m))
	}
	if c.isRestoringHub(e.At) {
		r.rewind(e.Job)
	} else if r.hub != nil && r.hub.UID == e.Job.UID {
		for _, wrong := range regressions(r.hub, e.Job, r.halted) {
			c.violate(e.At, Back, r, "%s", wrong)
		}
	} else {
		r.ended, r.homes = nil, nil
	}
	r.listen(e)
	c.observeHomes(r, e)
	r.hub = e.Job
	if condition, _ := story.Outcome(e.Job); condition != "" && r.ended == nil {
		r.ended = e.Job
	}
}

// rewind takes in the Job as it was when the hub was backed up, or as it has become since.
func (r *record) rewind(is *batchv1.Job) {
	r.rewound, r.returned = true, r.returned || r.hub == nil
	if r.ended != nil && !finished(&is.Status) {
		r.ended = nil
	}
	if r.hub == nil || isOlder(is, r.hub) {
		r.homes, r.ended = nil, nil // what was placed since the backup isn't known, nor what ended
	}
}

// withoutOurs is a status without what the manager keeps in it, such as the account.
func withoutOurs(s *batchv1.JobStatus) *batchv1.JobStatus {
	other := *s
	other.Conditions = slices.DeleteFunc(slices.Clone(s.Conditions), func(c batchv1.JobCondition) bool { return hubstate.IsOurs(c.Type) })
	return &other
}

// regression is a way in which a status can go back.
type regression struct {
	what string
	// back says whether it did; with what it was and what it is.
	back func(before, after *batchv1.JobStatus) bool
}

var waysBack = []regression{
	{"succeeded falls", func(b, a *batchv1.JobStatus) bool { return a.Succeeded < b.Succeeded }},
	{"failed falls", func(b, a *batchv1.JobStatus) bool { return a.Failed < b.Failed }},
	{"completedIndexes shrink", func(b, a *batchv1.JobStatus) bool { return !covers(a.CompletedIndexes, b.CompletedIndexes) }},
	{"failedIndexes shrink", func(b, a *batchv1.JobStatus) bool {
		return !covers(ptr.Deref(a.FailedIndexes, ""), ptr.Deref(b.FailedIndexes, ""))
	}},
	{"completionTime changes", func(b, a *batchv1.JobStatus) bool {
		return b.CompletionTime != nil && !a.CompletionTime.Equal(b.CompletionTime)
	}},
	{"a final condition is taken back", func(b, a *batchv1.JobStatus) bool {
		return slices.ContainsFunc(finals, func(t batchv1.JobConditionType) bool { return isTrue(b, t) && !isTrue(a, t) })
	}},
	{"a finished Job's status changes", func(b, a *batchv1.JobStatus) bool {
		return finished(b) && !equality.Semantic.DeepEqual(withoutOurs(a), withoutOurs(b))
	}},
	{"a finished Job has Pods", func(_, a *batchv1.JobStatus) bool {
		return finished(a) && a.Active+ptr.Deref(a.Ready, 0)+ptr.Deref(a.Terminating, 0) != 0
	}},
	{"more Pods are ready than active", func(_, a *batchv1.JobStatus) bool { return ptr.Deref(a.Ready, 0) > a.Active }},
	{"Complete without completionTime, or the other way round", func(_, a *batchv1.JobStatus) bool {
		return isTrue(a, batchv1.JobComplete) != (a.CompletionTime != nil)
	}},
	{"completionTime before startTime", func(_, a *batchv1.JobStatus) bool {
		return a.CompletionTime != nil && a.StartTime != nil && a.CompletionTime.Before(a.StartTime)
	}},
}

var finals = []batchv1.JobConditionType{
	batchv1.JobComplete, batchv1.JobFailed, batchv1.JobSuccessCriteriaMet, batchv1.JobFailureTarget,
}

// regressions are what is wrong with a change of a hub Job. Halted: its user suspended or resumed
// it, which changes the startTime.
func regressions(before, after *batchv1.Job, halted bool) []string {
	var wrong []string
	b, a := &before.Status, &after.Status
	for _, r := range waysBack {
		if r.back(b, a) {
			wrong = append(wrong, fmt.Sprintf("%s: %s -> %s", r.what, describeStatus(b), describeStatus(a)))
		}
	}
	if !halted && b.StartTime != nil && !a.StartTime.Equal(b.StartTime) {
		wrong = append(wrong, fmt.Sprintf("startTime changes from %s to %s", moment(b.StartTime), moment(a.StartTime)))
	}
	return wrong
}

func moment(t *metav1.Time) string {
	if t == nil {
		return "none"
	}
	return t.UTC().Format("15:04:05")
}

func isTrue(s *batchv1.JobStatus, kind batchv1.JobConditionType) bool {
	return slices.ContainsFunc(s.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}

func finished(s *batchv1.JobStatus) bool {
	return isTrue(s, batchv1.JobComplete) || isTrue(s, batchv1.JobFailed)
}
