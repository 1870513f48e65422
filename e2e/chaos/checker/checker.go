package checker

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/e2e/chaos/schedule"
	"github.com/jobferry/jobferry/e2e/chaos/story"
)

// Event is a change of an object in a cluster: of a Job or a Pod, or of what is said of a hub Job.
type Event struct {
	// At is when it was received, from the start of the run.
	At time.Duration
	// Where is the cluster's name.
	Where string
	Job   *batchv1.Job
	Pod   *corev1.Pod
	// Said is an event of Kubernetes about a hub Job.
	Said *corev1.Event
	// Gone: the object is as it was before it was deleted.
	Gone bool
}

// Worker is what the checker has to know of a worker.
type Worker struct {
	Name string
	// Fenced: it has the embedded controller, with a fence.
	Fenced bool
}

// Options choose what is checked.
type Options struct {
	Workers []Worker
	// LostAfter is how long a worker is unreachable before its Jobs are moved.
	LostAfter time.Duration
	// Shown says whether the hub shows the Pods of a namespace; nil: those of none.
	Shown func(namespace string) bool
}

// Rule names what was violated.
type Rule string

// The rules; see the package's documentation.
const (
	Back     Rule = "Back"
	Twice    Rule = "Twice"
	Apart    Rule = "Apart"
	Again    Rule = "Again"
	Vanished Rule = "Vanished"
	Placed   Rule = "Placed"
	Isolated Rule = "Isolated"
	Divided  Rule = "Divided"
	Ends     Rule = "Ends"
	Lost     Rule = "Lost"
	Orphan   Rule = "Orphan"
	Rejected Rule = "Rejected"
	Account  Rule = "Account"
	Silent   Rule = "Silent"
	Shown    Rule = "Shown"
)

// Violation is something that must not be.
type Violation struct {
	At   time.Duration
	Rule Rule
	// Job is its name; empty: it's about no single one.
	Job  string
	Text string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s %s %s: %s", stamp(v.At), v.Rule, v.Job, v.Text)
}

// Figures are what was counted.
type Figures struct {
	// Moves of Jobs, or their shards, away from workers, and how many Jobs made them.
	Moves, Moved int
	// Excused is how many Jobs ran something in two workers at a time where that isn't ruled out:
	// without a fence, or with a part down that the fence needs.
	Excused int
	// Reruns is how many indexes completed again after their worker was lost.
	Reruns int
	// Twins is how many indexes completed twice as Kubernetes' own Job controller had created two Pods
	// for them, which its documentation allows.
	Twins int
}

// Checker holds what was seen. It isn't safe for concurrent use.
type Checker struct {
	options    Options
	workers    map[string]Worker
	records    map[string]*record
	groups     map[string][]*record
	trouble    []Trouble
	violations []Violation
	figures    Figures
}

// New makes a checker of a run with these stories.
func New(o Options, stories []story.Story) *Checker {
	if o.Shown == nil {
		o.Shown = func(string) bool { return false }
	}
	c := &Checker{options: o, workers: map[string]Worker{}, records: map[string]*record{}, groups: map[string][]*record{}}
	for _, w := range o.Workers {
		c.workers[w.Name] = w
	}
	for i := range stories {
		r := newRecord(&stories[i])
		c.records[r.story.Name] = r
		if group := r.story.Group(); group != "" {
			c.groups[group] = append(c.groups[group], r)
		}
	}
	return c
}

// Observe takes in an event. It returns questions that have to be answered by Answer.
func (c *Checker) Observe(e Event) []Question {
	switch {
	case e.Said != nil:
		if r := c.records[e.Said.InvolvedObject.Name]; r != nil {
			c.observeSaid(r, e)
		}
	case e.Pod != nil && e.Where == schedule.Hub:
		if r := c.records[e.Pod.Labels[batchv1.JobNameLabel]]; r != nil {
			c.observeShown(r, e)
		}
	case e.Pod != nil:
		if r := c.records[e.Pod.Labels[batchv1.JobNameLabel]]; r != nil {
			return c.observePod(r, e)
		}
	case e.Where == schedule.Hub:
		if r := c.records[e.Job.Name]; r != nil {
			c.observeHubJob(r, e)
		}
	default:
		if r := c.records[e.Job.Name]; r != nil {
			c.observeMirror(r, e)
		}
	}
	return nil
}

// Acted takes in what a user is about to do to a Job.
func (c *Checker) Acted(at time.Duration, job string, deed story.Deed) {
	r := c.records[job]
	r.note(at, "user", string(deed))
	r.silence.hears(at)
	switch deed {
	case story.Delete, story.Replace:
		r.deletes = true
	case story.Suspend, story.Resume:
		r.halted = true
	case story.Scale:
		r.scaled = true
	case story.Reselect, story.ScaleElastic:
	}
}

// EndOfRun says that Jobs are deleted from now on.
func (c *Checker) EndOfRun() {
	for _, r := range c.records {
		r.deletes = true
	}
}

// Violations are all so far.
func (c *Checker) Violations() []Violation { return c.violations }

// Figures counted so far.
func (c *Checker) Figures() Figures {
	f := c.figures
	for _, r := range c.records {
		f.Moves += len(r.moves)
		if len(r.moves) > 0 {
			f.Moved++
		}
	}
	return f
}

// Report adds a violation that was found by others.
func (c *Checker) Report(v Violation) {
	c.violations = append(c.violations, v)
	if r := c.records[v.Job]; r != nil {
		r.note(v.At, "VIOLATION", fmt.Sprintf("%s: %s", v.Rule, v.Text))
	}
}

func (c *Checker) violate(at time.Duration, rule Rule, r *record, format string, arguments ...any) {
	c.Report(Violation{At: at, Rule: rule, Job: r.story.Name, Text: fmt.Sprintf(format, arguments...)})
}
