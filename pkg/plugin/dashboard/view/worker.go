package view

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/plugin/show"
)

// WorkerPage is the page of one worker.
type WorkerPage struct {
	Worker
	Created    time.Time
	Cordoned   bool
	Facts      []Fact
	Conditions []Condition
}

// Condition of a worker.
type Condition struct {
	Type, Reason, Message string
	Status                show.Cell
	Since                 time.Time
}

// NewWorkerPage makes the page of a worker.
func NewWorkerPage(w *v1alpha1.WorkerCluster) WorkerPage {
	page := WorkerPage{
		Worker: workerCard(w), Created: w.CreationTimestamp.Time, Cordoned: w.Spec.Cordoned || w.Spec.Drain, Facts: workerFacts(w),
	}
	for _, c := range w.Status.Conditions {
		page.Conditions = append(page.Conditions, Condition{
			Type: c.Type, Reason: c.Reason, Message: show.Printable(c.Message), Status: show.Cell{Text: string(c.Status), Tone: conditionTone(c)},
			Since: c.LastTransitionTime.Time,
		})
	}
	slices.SortStableFunc(page.Conditions, func(a, b Condition) int {
		return cmp.Or(cmp.Compare(urgency[a.Status.Tone], urgency[b.Status.Tone]), cmp.Compare(a.Type, b.Type))
	})
	return page
}

// conditionTone is good for what should be so. Of Lost alone, that is False.
func conditionTone(c metav1.Condition) string {
	good := metav1.ConditionTrue
	if c.Type == v1alpha1.ConditionLost {
		good = metav1.ConditionFalse
	}
	switch c.Status {
	case good:
		return "good"
	case metav1.ConditionUnknown:
		return "warn"
	default:
		return "bad"
	}
}

// workerFacts lists what the admin asked for, and what is known of the worker's token.
func workerFacts(w *v1alpha1.WorkerCluster) []Fact {
	token := "None that the manager renews"
	if c := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionTokenRenewed); c != nil {
		token = show.Printable(c.Message)
	}
	facts := []Fact{{"Token", token}, {"Capacity", string(w.Spec.Capacity)}, {"When removed", string(w.Spec.RemovalPolicy)}}
	if w.Spec.WorkerLostTimeout != nil {
		facts = append(facts, Fact{"Lost after", w.Spec.WorkerLostTimeout.Duration.String()})
	}
	return known(facts)
}
