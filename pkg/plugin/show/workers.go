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
	"github.com/jobferry/jobferry/pkg/jobview"
)

// workerTones are the tones of a worker's states.
var workerTones = map[jobview.WorkerState]string{
	jobview.WorkerRemoving: toneWarn, jobview.WorkerUnknown: toneFaint, jobview.WorkerLost: toneBad, jobview.WorkerNotReady: toneBad,
	jobview.WorkerDrained: toneWarn, jobview.WorkerDraining: toneWarn, jobview.WorkerCordoned: toneWarn, jobview.WorkerReady: toneGood,
}

// limitTones are those of a Ready worker's limits.
var limitTones = map[string]string{
	v1alpha1.ReasonNamespaceSelectorInvalid: toneBad, v1alpha1.ReasonTooManyMirrors: toneBad, v1alpha1.ReasonHeldElsewhere: toneBad,
	v1alpha1.ReasonCapacityUnknown: toneWarn, v1alpha1.ReasonPartlyChecked: toneWarn,
}

// WorkerState is the state of a worker, and its reason in parentheses.
func WorkerState(w *v1alpha1.WorkerCluster) Cell {
	state, reason := jobview.WorkerStateOf(w)
	if reason == "" {
		return Cell{string(state), workerTones[state]}
	}
	return Cell{Printable(fmt.Sprintf("%s (%s)", state, reason)), cmp.Or(limitTones[reason], workerTones[state])}
}

// Workers is the table of WorkerClusters.
func Workers(items []v1alpha1.WorkerCluster, now time.Time, wide bool) Table {
	t := Table{Header: []string{"NAME", "STATE", "VERSION", "NODES", "CPU", "MEMORY", "JOBS", "AGE"}}
	if wide {
		t.Header = append(t.Header, "OTHER RESOURCES", "CONTROLLER", "WEIGHT", "COST/H", "LAST CONTACT", "LABELS", "MESSAGE")
	}
	for i := range items {
		w := &items[i]
		cells := row(w.Name, WorkerState(w), cmp.Or(w.Status.KubernetesVersion, none), w.Status.Nodes,
			usage(w, corev1.ResourceCPU), usage(w, corev1.ResourceMemory), w.Status.Jobs, age(now, w.CreationTimestamp))
		if wide {
			cells = append(cells, wideWorker(w, now)...)
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

func wideWorker(w *v1alpha1.WorkerCluster, now time.Time) []Cell {
	contact := none // of a worker in touch, it's as old as the last change of its status
	if w.Status.LastContactTime != nil && jobview.IsOutOfTouch(w) {
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
			texts = append(texts, fmt.Sprintf("%s %s/%s", name, Amount(name, used), Amount(name, total)))
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
