package view

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/plugin/show"
)

// Queues are Kueue's on the hub.
type Queues struct {
	ClusterQueues []ClusterQueue
	LocalQueues   []LocalQueue
	// Missing says what couldn't be read, and why.
	Missing []string
}

// ClusterQueue is a queue with its quotas.
type ClusterQueue struct {
	Name, Cohort                 string
	State                        show.Cell
	Problem                      string
	Pending, Reserving, Admitted int32
	Quotas                       []Resource
}

// LocalQueue is a queue of a namespace.
type LocalQueue struct {
	Namespace, Name, ClusterQueue string
	State                         show.Cell
	Pending, Reserving, Admitted  int32
}

// NewQueues makes the page of queues.
func NewQueues(cluster []kueue.ClusterQueue, local []kueue.LocalQueue, missing []string) Queues {
	page := Queues{Missing: missing}
	for i := range cluster {
		page.ClusterQueues = append(page.ClusterQueues, clusterQueue(&cluster[i]))
	}
	for i := range local {
		q := &local[i]
		state, _ := queueState(q.Status.Conditions, kueue.LocalQueueActive)
		page.LocalQueues = append(page.LocalQueues, LocalQueue{
			Namespace: q.Namespace, Name: q.Name, ClusterQueue: string(q.Spec.ClusterQueue), State: state,
			Pending: q.Status.PendingWorkloads, Reserving: q.Status.ReservingWorkloads, Admitted: q.Status.AdmittedWorkloads,
		})
	}
	slices.SortFunc(page.ClusterQueues, func(a, b ClusterQueue) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(page.LocalQueues, func(a, b LocalQueue) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return page
}

func clusterQueue(q *kueue.ClusterQueue) ClusterQueue {
	state, problem := queueState(q.Status.Conditions, kueue.ClusterQueueActive)
	row := ClusterQueue{
		Name: q.Name, Cohort: string(q.Spec.CohortName), State: state, Problem: problem,
		Pending: q.Status.PendingWorkloads, Reserving: q.Status.ReservingWorkloads, Admitted: q.Status.AdmittedWorkloads,
	}
	for _, group := range q.Spec.ResourceGroups {
		for _, flavor := range group.Flavors {
			row.Quotas = append(row.Quotas, quotas(q, flavor)...)
		}
	}
	return row
}

// quotas are the nominal quotas of a flavor, with what is reserved of them.
func quotas(q *kueue.ClusterQueue, flavor kueue.FlavorQuotas) (rows []Resource) {
	for _, r := range flavor.Resources {
		title := string(flavor.Name) + ": " + r.Name.String()
		rows = append(rows, resourceOf(title, r.Name, reserved(q, flavor.Name, r.Name), r.NominalQuota))
	}
	return rows
}

func reserved(q *kueue.ClusterQueue, flavor kueue.ResourceFlavorReference, name corev1.ResourceName) (used resource.Quantity) {
	for _, of := range q.Status.FlavorsReservation {
		for _, r := range of.Resources {
			if of.Name == flavor && r.Name == name {
				return r.Total
			}
		}
	}
	return used
}

func queueState(conditions []metav1.Condition, kind string) (show.Cell, string) {
	switch c := meta.FindStatusCondition(conditions, kind); {
	case c == nil:
		return show.Cell{Text: "Unknown", Tone: "faint"}, ""
	case c.Status == metav1.ConditionTrue:
		return show.Cell{Text: "Active", Tone: "good"}, ""
	default:
		return show.Cell{Text: "Inactive (" + show.Printable(c.Reason) + ")", Tone: "bad"}, show.Printable(c.Message)
	}
}
