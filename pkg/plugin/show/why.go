package show

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// answers are the words for the manager's, and their tones.
var answers = map[v1alpha1.PlacementAnswer]Cell{
	v1alpha1.PlacementFitsNow:          {"fits now", toneGood},
	v1alpha1.PlacementFitsAfterScaleUp: {"after scale-up", toneGood},
	v1alpha1.PlacementFitsLater:        {"fits later", toneWarn},
	v1alpha1.PlacementNever:            {"never", toneBad},
	v1alpha1.PlacementNotChecked:       {"not checked", tonePlain},
	v1alpha1.PlacementExcluded:         {"excluded", toneFaint},
}

// Why writes an explanation: its line, and a table of the workers.
func Why(w io.Writer, e *v1alpha1.PlacementExplanation, wide bool, p Palette) error {
	var b strings.Builder
	field(&b, "Job", fmt.Sprintf("%s/%s", e.Namespace, e.Name))
	field(&b, "Pods at once", fmt.Sprint(e.PodsWanted))
	field(&b, "Answer", e.Message)
	if e.Waiting != nil {
		field(&b, "In line", InLine(e.Waiting, e.Time.Time))
	}
	if len(e.Workers) > 0 {
		b.WriteString("\n")
		if err := whyTable(e, wide).Write(&b, p); err != nil {
			return err
		}
	}
	if e.OmittedWorkers > 0 {
		fmt.Fprintf(&b, "\n%d more workers aren't listed.\n", e.OmittedWorkers)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// InLine is a Job's place among those that wait for room, and when it's expected to start: "2 of 7,
// expected on west in 5m at the latest".
func InLine(w *v1alpha1.WaitingExplanation, now time.Time) string {
	s := fmt.Sprintf("%d of %d", w.Place, w.Of)
	if w.Worker == "" {
		return s
	}
	if w.ExpectedStart == nil {
		return s + ", gets what becomes free on " + oneLine(w.Worker) + ", time not known yet"
	}
	in := duration.HumanDuration(max(w.ExpectedStart.Sub(now), 0))
	s += ", expected on " + oneLine(w.Worker)
	if w.Latest {
		return s + " in " + in + " at the latest"
	}
	return s + " in about " + in
}

func whyTable(e *v1alpha1.PlacementExplanation, wide bool) Table {
	t := Table{Header: []string{"WORKER", "ANSWER", "PODS", "LACKS", "WHY"}}
	if wide {
		t.Header = append(t.Header, "NODES", "COST/H", "SCORE", "REASON", "PLUGINS", "FIELDS")
	}
	for i := range e.Workers {
		w := &e.Workers[i]
		name := w.Name
		if w.Placed {
			name += " (placed)"
		}
		cells := row(name, answerOf(w, e.PodsWanted), podsThatFit(w, e.PodsWanted), shortages(w), w.Message)
		if wide {
			plugins, fields := pluginsOf(w)
			cells = append(cells, row(nodes(w), cmp.Or(w.CostPerHour, none), cmp.Or(w.Score, none), cmp.Or(w.Reason, none), plugins, fields)...)
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

// Answer is the manager's answer about a worker.
func Answer(answer v1alpha1.PlacementAnswer) Cell {
	if word, known := answers[answer]; known {
		return word
	}
	return Cell{Text: Printable(string(answer))} // of a newer manager
}

// answerOf is the answer of a worker. One that could never hold all Pods of a Job at once may start
// the Job with those that it can hold.
func answerOf(w *v1alpha1.WorkerExplanation, wanted int64) Cell {
	answer := Answer(w.Answer)
	if w.Answer == v1alpha1.PlacementFitsNow && w.PodsNow != nil && *w.PodsNow < wanted {
		answer.Text = "fits in part"
	}
	return answer
}

// podsThatFit is how many of the Pods that the Job would run at once would fit now.
func podsThatFit(w *v1alpha1.WorkerExplanation, wanted int64) string {
	if w.PodsNow == nil {
		return none
	}
	return fmt.Sprintf("%d/%d", min(*w.PodsNow, wanted), wanted)
}

// shortages are by how much the node is short that has most of it.
func shortages(w *v1alpha1.WorkerExplanation) string {
	texts := make([]string, len(w.Shortages))
	for i := range w.Shortages {
		s := &w.Shortages[i]
		texts[i] = fmt.Sprintf("%s of %s %s", s.Short.String(), s.Requested.String(), s.Resource)
	}
	return cmp.Or(strings.Join(texts, ", "), none)
}

func nodes(w *v1alpha1.WorkerExplanation) string {
	if w.PodsNow == nil {
		return none
	}
	return fmt.Sprint(w.Nodes)
}

// pluginsOf are the plugins of an explanation and the fields that they read, each once.
func pluginsOf(w *v1alpha1.WorkerExplanation) (plugins, fields string) {
	var names, paths []string
	add := func(all *[]string, text string) {
		if text != "" && !slices.Contains(*all, text) {
			*all = append(*all, text)
		}
	}
	add(&paths, w.Field)
	for i := range w.NodeReasons {
		add(&names, w.NodeReasons[i].Plugin)
		add(&paths, w.NodeReasons[i].Field)
	}
	return cmp.Or(strings.Join(names, ", "), none), cmp.Or(strings.Join(paths, ", "), none)
}
