package show

import (
	"cmp"
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
	tone tone
	// state is empty when it doesn't apply.
	state func(*v1alpha1.WorkerCluster) string
}{
	{toneWarn, when("Removing", func(w *v1alpha1.WorkerCluster) bool { return schedulableReason(w) == v1alpha1.ReasonRemoving })},
	{toneFaint, when("Unknown", func(w *v1alpha1.WorkerCluster) bool {
		return meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionReady) == nil
	})},
	{toneBad, lostState},
	{toneBad, notReadyState},
	{toneWarn, when("Drained", func(w *v1alpha1.WorkerCluster) bool { return Drained(w) })},
	{toneWarn, when("Draining", func(w *v1alpha1.WorkerCluster) bool { return w.Spec.Drain })},
	{toneWarn, when("Cordoned", func(w *v1alpha1.WorkerCluster) bool { return w.Spec.Cordoned })},
	{toneBad, when("Ready (NamespaceSelectorInvalid)", func(w *v1alpha1.WorkerCluster) bool {
		return schedulableReason(w) == v1alpha1.ReasonNamespaceSelectorInvalid
	})},
	{toneBad, when("Ready (TooManyMirrors)", func(w *v1alpha1.WorkerCluster) bool {
		return schedulableReason(w) == v1alpha1.ReasonTooManyMirrors
	})},
	{toneWarn, when("Ready (CapacityUnknown)", func(w *v1alpha1.WorkerCluster) bool {
		return schedulableReason(w) == v1alpha1.ReasonCapacityUnknown
	})},
	{toneWarn, when("Ready (PartlyChecked)", func(w *v1alpha1.WorkerCluster) bool {
		return schedulableReason(w) == v1alpha1.ReasonPartlyChecked
	})},
	{toneGood, func(*v1alpha1.WorkerCluster) string { return "Ready" }},
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

// Drained reports whether a worker that is being drained has no unfinished Job.
func Drained(w *v1alpha1.WorkerCluster) bool {
	return w.Spec.Drain && w.Status.ObservedGeneration >= w.Generation && w.Status.Jobs == 0
}

// workerState is the state of a worker in a word or two.
func workerState(w *v1alpha1.WorkerCluster) cell {
	for _, s := range workerStates {
		if state := s.state(w); state != "" {
			return cell{state, s.tone}
		}
	}
	return cell{text: none}
}

// Workers is the table of WorkerClusters.
func Workers(items []v1alpha1.WorkerCluster, now time.Time, wide bool) Table {
	t := Table{Header: []string{"NAME", "STATE", "VERSION", "NODES", "CPU", "MEMORY", "JOBS", "AGE"}}
	if wide {
		t.Header = append(t.Header, "OTHER RESOURCES", "CONTROLLER", "WEIGHT", "COST/H", "LAST CONTACT", "LABELS", "MESSAGE")
	}
	for i := range items {
		w := &items[i]
		cells := row(w.Name, workerState(w), cmp.Or(w.Status.KubernetesVersion, none), w.Status.Nodes,
			usage(w, corev1.ResourceCPU), usage(w, corev1.ResourceMemory), w.Status.Jobs, age(now, w.CreationTimestamp))
		if wide {
			cells = append(cells, wideWorker(w, now)...)
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

func wideWorker(w *v1alpha1.WorkerCluster, now time.Time) []cell {
	contact := none
	if w.Status.LastContactTime != nil {
		contact = age(now, *w.Status.LastContactTime)
	}
	message := ""
	if c := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		message = c.Message
	}
	return row(otherResources(w), cmp.Or(string(w.Spec.JobController), none), w.Spec.Weight,
		cmp.Or(Cost(w.Spec.Cost), none), contact, labels.FormatLabels(w.Labels), message)
}

// otherResources lists the use of extended resources, such as GPUs.
func otherResources(w *v1alpha1.WorkerCluster) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(w.Status.Allocatable)) {
		total, used := w.Status.Allocatable[name], w.Status.Requested[name]
		if strings.Contains(string(name), "/") && !total.IsZero() {
			texts = append(texts, fmt.Sprintf("%s %s/%s", name, amount(name, used), amount(name, total)))
		}
	}
	return cmp.Or(strings.Join(texts, ", "), none)
}

// Cost lists the prices of a worker's resources, such as "cpu 0.03, memory 0.004".
func Cost(cost v1alpha1.Cost) string {
	texts := make([]string, 0, len(cost))
	for _, name := range slices.Sorted(maps.Keys(cost)) {
		price := cost[name]
		texts = append(texts, fmt.Sprintf("%s %s", name, strconv.FormatFloat(price.AsApproximateFloat64(), 'f', -1, 64)))
	}
	return strings.Join(texts, ", ")
}
