package view

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
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
	State                        show.Word
	Problem                      string
	Pending, Reserving, Admitted int32
	Quotas                       []Resource
}

// LocalQueue is a queue of a namespace.
type LocalQueue struct {
	Namespace, Name, ClusterQueue string
	State                         show.Word
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
	for _, resource := range flavor.Resources {
		used := reserved(q, flavor.Name, resource.Name.String())
		total, free := resource.NominalQuota, resource.NominalQuota.DeepCopy()
		row := Resource{Name: string(flavor.Name) + ": " + resource.Name.String(), Total: show.Amount(resource.Name, total), Used: "0"}
		if used != nil {
			free.Sub(used.Total)
			share := 0.0
			if !total.IsZero() {
				share = used.Total.AsApproximateFloat64() / total.AsApproximateFloat64()
			}
			row.Used, row.Percent, row.Tone = show.Amount(resource.Name, used.Total), int(100*min(share, 1)), show.Pressure(share)
		}
		row.Free = show.Amount(resource.Name, free)
		rows = append(rows, row)
	}
	return rows
}

func reserved(q *kueue.ClusterQueue, flavor kueue.ResourceFlavorReference, resource string) *kueue.ResourceUsage {
	for i := range q.Status.FlavorsReservation {
		for j := range q.Status.FlavorsReservation[i].Resources {
			if u := &q.Status.FlavorsReservation[i].Resources[j]; q.Status.FlavorsReservation[i].Name == flavor && u.Name.String() == resource {
				return u
			}
		}
	}
	return nil
}

func queueState(conditions []metav1.Condition, kind string) (show.Word, string) {
	switch c := meta.FindStatusCondition(conditions, kind); {
	case c == nil:
		return show.Word{Text: "Unknown", Tone: "faint"}, ""
	case c.Status == metav1.ConditionTrue:
		return show.Word{Text: "Active", Tone: "good"}, ""
	default:
		return show.Word{Text: "Inactive (" + show.Printable(c.Reason) + ")", Tone: "bad"}, show.Printable(c.Message)
	}
}
