package view

import (
	"cmp"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/mirror/intervals"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// maxFailed is how many failed indexes are named.
const maxFailed = 50

// JobInput is what is known of one Job.
type JobInput struct {
	Job *batchv1.Job
	// HubEvents are about the Job, WorkerEvents about its mirrors and Pods.
	HubEvents, WorkerEvents []corev1.Event
	Pods                    []corev1.Pod
	Why                     *v1alpha1.PlacementExplanation
	// Workers have the prices.
	Workers []*v1alpha1.WorkerCluster
	// Missing says what couldn't be read, and why.
	Missing Missing
	// Reading: the hub or the workers haven't answered yet.
	Reading bool
	// Reason is what the Job's last event says. Behind: it isn't among those that were read.
	Reason jobview.Reason
	Behind bool
	// Events chooses some of the events; empty: the Job's own.
	Events string
}

// Missing has a text for each part of a Job's page that is incomplete.
type Missing struct{ Events, Pods, Why []string }

// JobPage is the page of one Job.
type JobPage struct {
	JobRow
	Finished bool
	// Bad: the Job failed, or will, for the reason in JobRow.Why.
	Bad      bool
	Facts    []Fact
	Timeline Timeline
	Indexes  *IndexMap
	// IndexesOmitted is the number of indexes that are too many to draw.
	IndexesOmitted int
	// FailedIndexes are the first ones; there are FailedOmitted more.
	FailedIndexes []int
	FailedOmitted int
	Events        Events
	Pods          []Pod
	PodsOmitted   int
	Why           *Why
	Usage         UsageTable
	Missing       Missing
	// Reading: Pods and events of workers aren't known yet.
	Reading bool
}

// Fact is a name with a value.
type Fact struct{ Name, Value string }

// NewJobPage makes the page of a Job.
func NewJobPage(in JobInput, now time.Time) JobPage {
	entries := entriesOf(in)
	around := jobview.Around{Reason: in.Reason, Workers: jobview.WorkersAmong(in.Workers)}
	is := factsOf(in.Job, func(*batchv1.Job) jobview.Around { return around })
	page := JobPage{
		JobRow:   jobRow(is, now),
		Facts:    jobFacts(in.Job),
		Timeline: NewTimeline(in.Job, entries, in.Pods, now),
		Indexes:  NewIndexMap(in.Job, in.Pods),
		Usage:    usageOf(in.Job, in.Workers, now),
		Missing:  in.Missing,
		Reading:  in.Reading,
	}
	page.Bad = page.State.Tone == "bad"
	page.Finished = is.state.IsFinal()
	if page.Indexes == nil && shards.Indexed(in.Job) {
		page.IndexesOmitted = int(ptr.Deref(in.Job.Spec.Completions, 0))
	}
	failed := intervals.ParseLenient(ptr.Deref(in.Job.Status.FailedIndexes, ""), intervals.NoLimit)
	page.FailedIndexes = failed.First(maxFailed)
	page.FailedOmitted = failed.Len() - len(page.FailedIndexes)
	page.Events = chosenEvents(entries, in.Events)
	page.Pods, page.PodsOmitted = podRows(in.Pods)
	if in.Why != nil && !page.Finished {
		page.Why = newWhy(in.Why)
		if page.JobRow.Why == "" && is.state == jobview.Pending { // its event has expired
			page.JobRow.Why, page.Summary = page.Why.Message, page.Why.Message
		}
	}
	return page
}

// known leaves out what isn't set.
func known(facts []Fact) []Fact {
	return slices.DeleteFunc(facts, func(f Fact) bool { return f.Value == "" })
}

// queueLabel is Kueue's.
const queueLabel = "kueue.x-k8s.io/queue-name"

// Annotations are those of a Job that its page shows.
var Annotations = []string{
	v1alpha1.AnnotationClusterSelector, v1alpha1.AnnotationClusterPreference, v1alpha1.AnnotationOnClusterLost, v1alpha1.AnnotationMaxClusters,
}

// jobFacts lists what the user asked for, and what Jobferry notes of the placement. What isn't set
// is left out.
func jobFacts(job *batchv1.Job) []Fact {
	facts := []Fact{
		{"Parallelism", number(job.Spec.Parallelism)},
		{"Completions", number(job.Spec.Completions)},
		{"Completion mode", string(ptr.Deref(job.Spec.CompletionMode, ""))},
		{"Moved from", hubstate.Get(job, hubstate.MovedFrom)},
		{"Cluster selector", job.Annotations[v1alpha1.AnnotationClusterSelector]},
		{"Cluster preference", job.Annotations[v1alpha1.AnnotationClusterPreference]},
		{"On cluster lost", cmp.Or(job.Annotations[v1alpha1.AnnotationOnClusterLost], v1alpha1.OnClusterLostResume)},
		{"Max clusters", job.Annotations[v1alpha1.AnnotationMaxClusters]},
		{"Queue", job.Labels[queueLabel]},
	}
	return known(facts)
}
