package show

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// workerStates are checked in order; the first that applies is shown.
var workerStates = []struct {
	tone Tone
	// state is empty when it doesn't apply.
	state func(*v1alpha1.WorkerCluster) string
}{
	{Warn, when("Removing", func(w *v1alpha1.WorkerCluster) bool { return schedulableReason(w) == v1alpha1.ReasonRemoving })},
	{Faint, when("Unknown", func(w *v1alpha1.WorkerCluster) bool {
		return meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionReady) == nil
	})},
	{Bad, lostState},
	{Bad, notReadyState},
	{Warn, when("Drained", func(w *v1alpha1.WorkerCluster) bool { return Drained(w) })},
	{Warn, when("Draining", func(w *v1alpha1.WorkerCluster) bool { return w.Spec.Drain })},
	{Warn, when("Cordoned", func(w *v1alpha1.WorkerCluster) bool { return w.Spec.Cordoned })},
	{Warn, when("Ready (CapacityUnknown)", func(w *v1alpha1.WorkerCluster) bool {
		return schedulableReason(w) == v1alpha1.ReasonCapacityUnknown
	})},
	{Good, func(*v1alpha1.WorkerCluster) string { return "Ready" }},
}

func when(state string, applies func(*v1alpha1.WorkerCluster) bool) func(*v1alpha1.WorkerCluster) string {
	return func(w *v1alpha1.WorkerCluster) string {
		if applies(w) {
			return state
		}
		return ""
	}
}

func lostState(w *v1alpha1.WorkerCluster) string {
	if !meta.IsStatusConditionTrue(w.Status.Conditions, v1alpha1.ConditionLost) {
		return ""
	}
	return "Lost" + inParentheses(w, v1alpha1.ConditionReady)
}

func notReadyState(w *v1alpha1.WorkerCluster) string {
	if meta.IsStatusConditionTrue(w.Status.Conditions, v1alpha1.ConditionReady) {
		return ""
	}
	return "NotReady" + inParentheses(w, v1alpha1.ConditionReady)
}

func inParentheses(w *v1alpha1.WorkerCluster, condition string) string {
	if c := meta.FindStatusCondition(w.Status.Conditions, condition); c != nil && c.Reason != "" {
		return " (" + c.Reason + ")"
	}
	return ""
}

func schedulableReason(w *v1alpha1.WorkerCluster) string {
	if c := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionSchedulable); c != nil {
		return c.Reason
	}
	return ""
}

// Drained says whether a worker is being drained, and has no unfinished Job left.
func Drained(w *v1alpha1.WorkerCluster) bool {
	return w.Spec.Drain && w.Status.ObservedGeneration >= w.Generation && w.Status.Jobs == 0
}

// WorkerState is the state of a worker in a word or two.
func WorkerState(w *v1alpha1.WorkerCluster) Cell {
	for _, s := range workerStates {
		if state := s.state(w); state != "" {
			return Cell{state, s.tone}
		}
	}
	return Text(none)
}

// Workers is the table of WorkerClusters.
func Workers(items []v1alpha1.WorkerCluster, now time.Time, wide bool) Table {
	t := Table{Header: []string{"NAME", "STATE", "VERSION", "NODES", "CPU", "MEMORY", "JOBS", "AGE"}}
	if wide {
		t.Header = append(t.Header, "OTHER RESOURCES", "CONTROLLER", "WEIGHT", "LAST CONTACT", "LABELS", "MESSAGE")
	}
	for i := range items {
		w := &items[i]
		row := []Cell{
			Text(w.Name), WorkerState(w), Text(orNone(w.Status.KubernetesVersion)), Text(strconv.Itoa(int(w.Status.Nodes))),
			usage(corev1.ResourceCPU, w.Status.Requested, w.Status.Allocatable),
			usage(corev1.ResourceMemory, w.Status.Requested, w.Status.Allocatable),
			Text(strconv.Itoa(int(w.Status.Jobs))), Text(age(now, w.CreationTimestamp)),
		}
		if wide {
			row = append(row, wideWorker(w, now)...)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func wideWorker(w *v1alpha1.WorkerCluster, now time.Time) []Cell {
	contact := none
	if w.Status.LastContactTime != nil {
		contact = age(now, *w.Status.LastContactTime)
	}
	message := ""
	if c := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		message = c.Message
	}
	return []Cell{
		Text(otherResources(w)), Text(orNone(string(w.Spec.JobController))), Text(strconv.Itoa(int(w.Spec.Weight))),
		Text(contact), Text(orNone(labels.FormatLabels(w.Labels))), Text(message),
	}
}

// otherResources are the extended ones, such as GPUs.
func otherResources(w *v1alpha1.WorkerCluster) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(w.Status.Allocatable)) {
		total, used := w.Status.Allocatable[name], w.Status.Requested[name]
		if strings.Contains(string(name), "/") && !total.IsZero() {
			texts = append(texts, fmt.Sprintf("%s %s/%s", name, amount(name, used), amount(name, total)))
		}
	}
	return orNone(strings.Join(texts, ", "))
}

func orNone(text string) string {
	if text == "" {
		return none
	}
	return text
}
