package show

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// Description is all that is known of one Job.
type Description struct {
	Job *batchv1.Job
	// Workers are those of the hub; nil: the user may not see them.
	Workers []v1alpha1.WorkerCluster
	// Mirror is the Job in its worker; nil: there is none, or MirrorProblem.
	Mirror *batchv1.Job
	// MirrorProblem says why it can't be read; empty: it was, or there's none.
	MirrorProblem string
	Events        []Entry
}

// Write writes the description.
func (d Description) Write(w io.Writer, now time.Time, p Palette) error {
	var b strings.Builder
	d.writeHead(&b, p)
	d.writePlacement(&b, now, p)
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
	state := JobState(d.Job)
	field(b, "Name", d.Job.Name)
	field(b, "Namespace", d.Job.Namespace)
	painted(b, "State", p.Paint(state.Tone, state.Text))
	if failed := conditionOf(d.Job, batchv1.JobFailed); failed != nil {
		field(b, "Reason", oneLine(failed.Reason+": "+failed.Message))
	}
}

// fieldWidth aligns the values of the head.
const fieldWidth = 18

func field(b *strings.Builder, name, value string) { painted(b, name, Printable(value)) }

func painted(b *strings.Builder, name, value string) {
	fmt.Fprintf(b, "%-*s%s\n", fieldWidth, name+":", value)
}

func (d Description) writePlacement(b *strings.Builder, now time.Time, p Palette) {
	worker := Worker(d.Job)
	field(b, "Worker", orNone(worker))
	if from := d.Job.Annotations[v1alpha1.AnnotationMovedFrom]; from != "" {
		field(b, "Moved from", from+" (it starts nowhere else before that has no copy of it)")
	}
	field(b, "Selector", orNone(d.Job.Annotations[v1alpha1.AnnotationClusterSelector]))
	field(b, "On cluster lost", orDefault(d.Job.Annotations[v1alpha1.AnnotationOnClusterLost], "Resume (default)"))
	if last := d.placement(); last != nil {
		field(b, "Placement", fmt.Sprintf("%s, %s ago: %s", last.Reason, eventAge(last, now), oneLine(last.Message)))
	}
	if d.Workers == nil || mirror.Finished(d.Job) {
		return
	}
	b.WriteString("\nWorkers:\n")
	_ = indented(b, d.candidates(), p) // a strings.Builder takes all
}

// placementReasons are those of Jobferry's events about where a Job is.
var placementReasons = []string{v1alpha1.EventPlaced, v1alpha1.EventMoved, v1alpha1.EventPending}

// placement is the last event about where the Job is.
func (d Description) placement() *corev1.Event {
	var last *corev1.Event
	for i := range d.Events {
		e := &d.Events[i].Event
		ours := d.Events[i].From == Hub && slices.Contains(placementReasons, e.Reason)
		if ours && (last == nil || !eventTime(e).Before(eventTime(last))) {
			last = e
		}
	}
	return last
}

// candidates says of each worker what is known here: room isn't, that is in the event.
func (d Description) candidates() Table {
	t := Table{Header: []string{"NAME", "STATE", "CPU", "MEMORY", "VERDICT"}}
	for i := range d.Workers {
		w := &d.Workers[i]
		t.Rows = append(t.Rows, []Cell{
			Text(w.Name), WorkerState(w),
			usage(corev1.ResourceCPU, w.Status.Requested, w.Status.Allocatable),
			usage(corev1.ResourceMemory, w.Status.Requested, w.Status.Allocatable),
			verdict(d.Job, w),
		})
	}
	return t
}

func orDefault(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// statusRow is one line of the two statuses.
type statusRow struct {
	name string
	of   func(*batchv1.Job, time.Time) string
}

var statusRows = []statusRow{
	{"Parallelism", func(j *batchv1.Job, _ time.Time) string { return number(j.Spec.Parallelism) }},
	{"Completions", func(j *batchv1.Job, _ time.Time) string { return number(j.Spec.Completions) }},
	{"Suspended", func(j *batchv1.Job, _ time.Time) string { return strconv.FormatBool(mirror.Suspended(j)) }},
	{"Active", func(j *batchv1.Job, _ time.Time) string { return strconv.Itoa(int(j.Status.Active)) }},
	{"Ready", func(j *batchv1.Job, _ time.Time) string { return number(j.Status.Ready) }},
	{"Terminating", func(j *batchv1.Job, _ time.Time) string { return number(j.Status.Terminating) }},
	{"Succeeded", func(j *batchv1.Job, _ time.Time) string { return strconv.Itoa(int(j.Status.Succeeded)) }},
	{"Failed", func(j *batchv1.Job, _ time.Time) string { return strconv.Itoa(int(j.Status.Failed)) }},
	{"Completed indexes", func(j *batchv1.Job, _ time.Time) string { return orNone(j.Status.CompletedIndexes) }},
	{"Failed indexes", func(j *batchv1.Job, _ time.Time) string { return orNone(ptr.Deref(j.Status.FailedIndexes, "")) }},
	{"Started", func(j *batchv1.Job, now time.Time) string { return ago(j.Status.StartTime, now) }},
	{"Completed", func(j *batchv1.Job, now time.Time) string { return ago(j.Status.CompletionTime, now) }},
	{"Conditions", func(j *batchv1.Job, _ time.Time) string { return conditions(j) }},
}

func number(n *int32) string {
	if n == nil {
		return none
	}
	return strconv.Itoa(int(*n))
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
		if c.Status == corev1.ConditionTrue {
			texts = append(texts, string(c.Type))
		}
	}
	return orNone(strings.Join(texts, ", "))
}

// writeStatus writes both statuses side by side. What differs is coloured: the hub is behind for a
// moment, or doesn't accept what the worker says.
func (d Description) writeStatus(b *strings.Builder, now time.Time, p Palette) {
	t := Table{Header: []string{"", "HUB"}}
	if d.Mirror != nil {
		t.Header = append(t.Header, "WORKER "+Worker(d.Job))
	}
	for _, r := range statusRows {
		row := []Cell{Text(r.name), Text(r.of(d.Job, now))}
		if d.Mirror != nil {
			other := Text(r.of(d.Mirror, now))
			if other.Text != row[1].Text {
				other.Tone = Warn
			}
			row = append(row, other)
		}
		t.Rows = append(t.Rows, row)
	}
	b.WriteString("\nStatus:\n")
	_ = indented(b, t, p) // a strings.Builder takes all
	if d.MirrorProblem != "" {
		fmt.Fprintf(b, "  The worker's side can't be read: %s\n", Printable(d.MirrorProblem))
	}
}

// indented writes a table two columns to the right.
func indented(b *strings.Builder, t Table, p Palette) error {
	var lines strings.Builder
	if err := t.Write(&lines, p); err != nil {
		return err
	}
	for line := range strings.Lines(lines.String()) {
		b.WriteString("  " + line)
	}
	return nil
}
