package show

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/preference"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/util/selectors"
)

// Description is what is known about one Job.
type Description struct {
	Job *batchv1.Job
	// Workers are all workers of the hub; nil: the user lacks permission to list them.
	Workers []v1alpha1.WorkerCluster
	// Mirrors are the Job in its workers, as far as it's there and can be read.
	Mirrors map[string]*batchv1.Job
	// Problems are why mirrors or their events can't be read.
	Problems []string
	Events   []Entry
}

// Write writes the description.
func (d Description) Write(w io.Writer, now time.Time, p Palette) error {
	var b strings.Builder
	d.writeHead(&b, p)
	d.writePlacement(&b, now, p)
	d.writeShards(&b, p)
	d.writeStatus(&b, now, p)
	b.WriteString("\nEvents:\n")
	if len(d.Events) == 0 {
		b.WriteString("  none\n")
	} else if err := indented(&b, Timeline(d.Events, now), p); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (d Description) writeHead(b *strings.Builder, p Palette) {
	state := JobState(jobview.StateOf(d.Job, d.Around()))
	field(b, "Name", d.Job.Name)
	field(b, "Namespace", d.Job.Namespace)
	painted(b, "State", p.paint(state.Tone, state.Text))
	if failed := mirror.TrueCondition(&d.Job.Status, batchv1.JobFailed); failed != nil {
		field(b, "Reason", failed.Reason+": "+failed.Message)
	}
}

// Around is what is known of the Job beside itself.
func (d Description) Around() jobview.Around {
	var ours []corev1.Event
	for i := range d.Events {
		if d.Events[i].From == Hub {
			ours = append(ours, d.Events[i].Event)
		}
	}
	return jobview.AroundBy(jobview.Newest(ours), SeenWorkers(d.Workers))(d.Job)
}

// fieldWidth aligns the values of the head.
const fieldWidth = 18

func field(b *strings.Builder, name, value string) { painted(b, name, oneLine(value)) }

func painted(b *strings.Builder, name, value string) {
	fmt.Fprintf(b, "%-*s%s\n", fieldWidth, name+":", value)
}

func (d Description) writePlacement(b *strings.Builder, now time.Time, p Palette) {
	field(b, "Worker", cmp.Or(strings.Join(shards.WorkersOf(d.Job), ", "), none))
	if most, asked := d.Job.Annotations[v1alpha1.AnnotationMaxClusters]; asked {
		field(b, "Max clusters", most)
	}
	state := jobview.StateOf(d.Job, d.Around())
	if from := hubstate.Get(d.Job, hubstate.MovedFrom); from != "" {
		if state == jobview.Moving {
			from += " (it starts only after that worker has no mirror of it)"
		}
		field(b, "Moved from", from)
	}
	field(b, "Selector", cmp.Or(d.Job.Annotations[v1alpha1.AnnotationClusterSelector], none))
	if preferred := d.Job.Annotations[v1alpha1.AnnotationClusterPreference]; preferred != "" {
		field(b, "Preference", preferred)
	}
	field(b, "On cluster lost", cmp.Or(d.Job.Annotations[v1alpha1.AnnotationOnClusterLost], "Resume (default)"))
	if last := d.placement(); last != nil {
		field(b, "Placement", fmt.Sprintf("%s, %s ago: %s", last.Reason, eventAge(last, now), last.Message))
	}
	if state == jobview.Pending {
		field(b, "Why", fmt.Sprintf("kubectl jobferry why %s -n %s", d.Job.Name, d.Job.Namespace))
	}
	if d.Workers == nil || mirror.Finished(d.Job) {
		return
	}
	b.WriteString("\nWorkers:\n")
	_ = indented(b, d.candidates(), p) // a strings.Builder never fails
}

// placementReasons are the reasons of events about the placement of a Job.
var placementReasons = []string{v1alpha1.EventPlaced, v1alpha1.EventMoved, v1alpha1.EventPending}

// placement returns the last event about the placement of the Job.
func (d Description) placement() *corev1.Event {
	var last *corev1.Event
	for i := range d.Events {
		e := &d.Events[i].Event
		ours := d.Events[i].From == Hub && slices.Contains(placementReasons, e.Reason)
		if ours && (last == nil || !jobview.Time(e).Before(jobview.Time(last))) {
			last = e
		}
	}
	return last
}

// candidates lists the workers. Whether the Job fits isn't known here; its events tell.
func (d Description) candidates() Table {
	t := Table{Header: []string{"NAME", "STATE", "CPU", "MEMORY", "PLACEMENT"}}
	for i := range d.Workers {
		w := &d.Workers[i]
		t.Rows = append(t.Rows, row(w.Name, WorkerState(w), usage(w, corev1.ResourceCPU), usage(w, corev1.ResourceMemory), placeable(d.Job, w)))
	}
	return t
}

// placeable tells whether a Job can be placed on a worker, as far as the hub's objects show. It
// checks in the order of placement.
func placeable(job *batchv1.Job, w *v1alpha1.WorkerCluster) Cell {
	selector, err := selectors.Parse(job.Annotations[v1alpha1.AnnotationClusterSelector])
	switch {
	case shards.IsOn(job, w.Name):
		return Cell{"the Job is here", toneGood}
	case err != nil:
		return Cell{fmt.Sprintf("the selector is invalid: %v", err), toneBad}
	case !selector.Matches(labels.Set(w.Labels)):
		return Cell{"doesn't match the selector", toneFaint}
	case !isPreferred(job, w):
		return Cell{"doesn't match the preference", toneFaint}
	case !meta.IsStatusConditionTrue(w.Status.Conditions, v1alpha1.ConditionReady):
		return Cell{"not ready", toneBad}
	case !meta.IsStatusConditionTrue(w.Status.Conditions, v1alpha1.ConditionSchedulable):
		return Cell{"takes no new Jobs" + whyUnschedulable(w), toneWarn}
	default:
		return Cell{Text: "can be chosen, if the Job fits"}
	}
}

// whyUnschedulable is the reason in parentheses.
func whyUnschedulable(w *v1alpha1.WorkerCluster) string {
	if c := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionSchedulable); c != nil && c.Reason != "" {
		return " (" + c.Reason + ")"
	}
	return ""
}

// isPreferred reports whether some step of a Job's preference selects a worker. One that can't be
// read is told in an event.
func isPreferred(job *batchv1.Job, w *v1alpha1.WorkerCluster) bool {
	p, err := preference.Parse(job.Annotations)
	step, _ := p.StepOf(w.Labels, time.Time{})
	return err != nil || step != preference.None
}

// statusRows are the lines of the two statuses.
var statusRows = []struct {
	name string
	of   func(*batchv1.Job, time.Time) any
}{
	{"Parallelism", func(j *batchv1.Job, _ time.Time) any { return j.Spec.Parallelism }},
	{"Completions", func(j *batchv1.Job, _ time.Time) any { return j.Spec.Completions }},
	{"Suspended", func(j *batchv1.Job, _ time.Time) any { return mirror.Suspended(j) }},
	{"Active", func(j *batchv1.Job, _ time.Time) any { return j.Status.Active }},
	{"Ready", func(j *batchv1.Job, _ time.Time) any { return j.Status.Ready }},
	{"Terminating", func(j *batchv1.Job, _ time.Time) any { return j.Status.Terminating }},
	{"Succeeded", func(j *batchv1.Job, _ time.Time) any { return j.Status.Succeeded }},
	{"Failed", func(j *batchv1.Job, _ time.Time) any { return j.Status.Failed }},
	{"Completed indexes", func(j *batchv1.Job, _ time.Time) any { return cmp.Or(j.Status.CompletedIndexes, none) }},
	{"Failed indexes", func(j *batchv1.Job, _ time.Time) any { return cmp.Or(ptr.Deref(j.Status.FailedIndexes, ""), none) }},
	{"Started", func(j *batchv1.Job, now time.Time) any { return ago(j.Status.StartTime, now) }},
	{"Completed", func(j *batchv1.Job, now time.Time) any { return ago(j.Status.CompletionTime, now) }},
	{"Conditions", func(j *batchv1.Job, _ time.Time) any { return conditions(j) }},
}

func ago(t *metav1.Time, now time.Time) string {
	if t == nil {
		return none
	}
	return age(now, *t) + " ago"
}

func conditions(job *batchv1.Job) string {
	var texts []string
	for _, c := range job.Status.Conditions {
		if hubstate.IsOurs(c.Type) {
			continue
		}
		if c.Status == corev1.ConditionTrue {
			texts = append(texts, string(c.Type))
		}
	}
	return cmp.Or(strings.Join(texts, ", "), none)
}

// writeStatus writes the status, and, side by side, that of the only mirror; those of several are
// parts of it. It colours the differences: the hub is behind for a moment, or rejects the worker's
// status.
func (d Description) writeStatus(b *strings.Builder, now time.Time, p Palette) {
	t := Table{Header: []string{"", "HUB"}}
	var only *batchv1.Job
	if workers := shards.WorkersOf(d.Job); len(workers) == 1 {
		only = d.Mirrors[workers[0]]
	}
	if only != nil {
		t.Header = append(t.Header, "WORKER "+shards.WorkersOf(d.Job)[0])
	}
	for _, r := range statusRows {
		cells := row(r.name, r.of(d.Job, now))
		if only != nil {
			cells = append(cells, row(r.of(only, now))...)
			if cells[1].Text != cells[2].Text {
				cells[2].Tone = toneWarn
			}
		}
		t.Rows = append(t.Rows, cells)
	}
	b.WriteString("\nStatus:\n")
	_ = indented(b, t, p) // a strings.Builder never fails
	for _, problem := range d.Problems {
		fmt.Fprintf(b, "  The worker's side can't be read: %s\n", oneLine(problem))
	}
}

// indented writes a table two columns to the right.
func indented(b *strings.Builder, t Table, p Palette) error {
	w := NewTableWriter(b, p)
	w.indent = "  "
	return w.Write(t)
}
