package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/show"
)

// maxRows of a table are shown on a Job's page.
const maxRows = 200

// Event is a row of the events of hub and workers.
type Event struct {
	Time                          time.Time
	From, Object, Reason, Message string
	Warning                       bool
	Count                         int
}

// entriesOf joins the events of hub and workers, the oldest first. Within a second the hub's come
// first, as the workers' follow from them.
func entriesOf(in JobInput) []show.Entry {
	entries := show.Entries(show.Hub, in.HubEvents)
	for _, e := range in.WorkerEvents {
		entries = append(entries, show.Entry{From: access.WorkerOf(&e), Event: e})
	}
	slices.SortStableFunc(entries, func(a, b show.Entry) int {
		return jobview.Time(&a.Event).Truncate(time.Second).Compare(jobview.Time(&b.Event).Truncate(time.Second))
	})
	return entries
}

// eventRows lists the newest events, the newest first.
func eventRows(entries []show.Entry) (rows []Event, omitted int) {
	for i := len(entries) - 1; i >= 0 && len(rows) < maxRows; i-- {
		e := &entries[i].Event
		count := int(e.Count)
		if e.Series != nil {
			count = int(e.Series.Count)
		}
		rows = append(rows, Event{
			Time: jobview.Time(e), From: entries[i].From, Object: strings.ToLower(e.InvolvedObject.Kind) + "/" + e.InvolvedObject.Name,
			Reason: show.Printable(e.Reason), Message: show.Printable(e.Message), Warning: e.Type == corev1.EventTypeWarning, Count: count,
		})
	}
	return rows, len(entries) - len(rows)
}

// Pod is a row of the Pods of a Job.
type Pod struct {
	Name, Index, Ready, Worker, Node string
	State                            show.Word
	Restarts                         int
	Created                          time.Time
	Containers                       []string
	// HasLog: a container has started.
	HasLog bool
}

// podRows lists Pods: those that run or have a problem first, as one looks for them.
func podRows(pods []corev1.Pod) (rows []Pod, omitted int) {
	sorted := show.SortedPods(pods)
	slices.SortStableFunc(sorted, func(a, b corev1.Pod) int { return cmp.Compare(podRank(&a), podRank(&b)) })
	for i := range sorted[:min(len(sorted), maxRows)] {
		pod := &sorted[i]
		ready, restarts := show.PodContainers(pod)
		row := Pod{
			Name: pod.Name, Index: show.PodIndex(pod), Ready: ready, Restarts: restarts, Worker: access.WorkerOf(pod), Node: pod.Spec.NodeName,
			State: show.PodState(pod), Created: pod.CreationTimestamp.Time, HasLog: pod.Status.Phase != corev1.PodPending,
		}
		for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
			row.Containers = append(row.Containers, c.Name)
		}
		rows = append(rows, row)
	}
	return rows, len(sorted) - len(rows)
}

func podRank(pod *corev1.Pod) int {
	switch show.PodState(pod).Tone {
	case "bad":
		return 0
	case "warn":
		return 1
	default:
		if pod.Status.Phase == corev1.PodSucceeded {
			return 3
		}
		return 2
	}
}

// Why is in which workers a Job could run now, and why not in the others.
type Why struct {
	Message string
	// InLine is the Job's place among those that wait; empty: it isn't among them.
	InLine     string
	PodsWanted int64
	Workers    []WhyWorker
	Omitted    int
}

// WhyWorker is the answer about one worker.
type WhyWorker struct {
	Name, Message, Fit string
	// Cost of the Job's Pods for an hour; empty: the worker has no prices.
	Cost   string
	Placed bool
	Answer show.Word
	// Short says of which resource how much is missing.
	Short []string
	// Nodes says why nodes take no further Pod.
	Nodes []string
}

func newWhy(e *v1alpha1.PlacementExplanation) *Why {
	why := &Why{Message: show.Printable(e.Message), PodsWanted: e.PodsWanted, Omitted: e.OmittedWorkers}
	if e.Waiting != nil {
		why.InLine = show.InLine(e.Waiting, e.Time.Time)
	}
	for i := range e.Workers {
		why.Workers = append(why.Workers, whyWorker(&e.Workers[i]))
	}
	return why
}

func whyWorker(w *v1alpha1.WorkerExplanation) WhyWorker {
	row := WhyWorker{Name: w.Name, Message: show.Printable(w.Message), Cost: show.Printable(w.CostPerHour), Placed: w.Placed, Answer: show.Answer(w.Answer)}
	if w.PodsNow != nil && w.PodsNeeded != nil {
		row.Fit = fmt.Sprintf("%d of %d", min(*w.PodsNow, *w.PodsNeeded), *w.PodsNeeded)
	}
	for i := range w.Shortages {
		s := &w.Shortages[i]
		row.Short = append(row.Short, fmt.Sprintf("%s: %s short of %s, a node has %s at most",
			s.Resource, show.Amount(s.Resource, s.Short), show.Amount(s.Resource, s.Requested), show.Amount(s.Resource, s.Most)))
	}
	for _, n := range w.NodeReasons {
		text := show.Printable(n.Message)
		if n.Nodes > 0 {
			text = fmt.Sprintf("%d × %s", n.Nodes, text)
		}
		row.Nodes = append(row.Nodes, text)
	}
	return row
}

func number(n *int32) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}
