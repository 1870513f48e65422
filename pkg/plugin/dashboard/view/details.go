package view

import (
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

// entriesOf joins the events of hub and workers, the oldest first.
func entriesOf(in JobInput) []show.Entry {
	entries := slices.Grow(show.Entries(show.Hub, in.HubEvents), len(in.WorkerEvents))
	for _, e := range in.WorkerEvents {
		entries = append(entries, show.Entry{From: access.WorkerOf(&e), Event: e})
	}
	return show.InOrder(entries)
}

// Events are those of a Job that are shown.
type Events struct {
	Rows    []Event
	Omitted int
	// Filters are the ways to choose some of them.
	Filters []Choice
}

// eventFilters are in the order in which they're offered. Without a choice, the first one holds
// that selects anything: the Job's own events aren't buried by those of its Pods.
var eventFilters = []struct {
	value, text, tone string
	selects           func(*corev1.Event) bool
}{
	{"job", "of the Job", "", isOwn},
	{"warnings", "Warnings", "warn", func(e *corev1.Event) bool { return e.Type == corev1.EventTypeWarning }},
	{"all", "All", "", func(*corev1.Event) bool { return true }},
}

// isOwn reports whether an event is about the Job itself. Its controller writes one about it for
// each Pod, too.
func isOwn(e *corev1.Event) bool {
	return e.InvolvedObject.Kind == "Job" && e.Reason != "SuccessfulCreate" && e.Reason != "SuccessfulDelete"
}

// chosenEvents selects events by the value of a filter.
func chosenEvents(entries []show.Entry, chosen string) Events {
	var events Events
	var rows []*show.Entry
	for _, filter := range eventFilters {
		var selected []*show.Entry
		for i := range entries {
			if filter.selects(&entries[i].Event) {
				selected = append(selected, &entries[i])
			}
		}
		holds := chosen == filter.value || chosen == "" && len(selected) > 0
		if holds {
			chosen, rows = filter.value, selected
		}
		choice := Choice{Value: filter.value, Text: filter.text, Count: len(selected), Chosen: holds}
		if choice.Count > 0 {
			choice.Tone = filter.tone
		}
		events.Filters = append(events.Filters, choice)
	}
	events.Rows, events.Omitted = eventRows(rows)
	return events
}

// eventRows lists the newest events, the newest first.
func eventRows(entries []*show.Entry) (rows []Event, omitted int) {
	for i := len(entries) - 1; i >= 0 && len(rows) < maxRows; i-- {
		e := &entries[i].Event
		rows = append(rows, Event{
			Time: jobview.Time(e), From: entries[i].From, Object: strings.ToLower(e.InvolvedObject.Kind) + "/" + e.InvolvedObject.Name,
			Reason: show.Printable(e.Reason), Message: show.Printable(e.Message), Warning: e.Type == corev1.EventTypeWarning, Count: show.Times(e),
		})
	}
	return rows, len(entries) - len(rows)
}

// Pod is a row of the Pods of a Job.
type Pod struct {
	Name, Index, Ready, Worker, Node string
	State                            show.Cell
	Restarts                         int
	Created                          time.Time
	Containers                       []Container
	// HasLog: a container has started.
	HasLog bool
}

// Container of a Pod.
type Container struct {
	Name string
	// Restarted: there is a log of its previous run.
	Restarted bool
}

// podRows lists Pods: those that run or have a problem first, as one looks for them.
func podRows(pods []corev1.Pod) (rows []Pod, omitted int) {
	sorted := show.SortedPods(pods)
	var ranked [podRanks][]*corev1.Pod
	for i := range sorted {
		rank := podRank(&sorted[i])
		ranked[rank] = append(ranked[rank], &sorted[i])
	}
	for _, pod := range slices.Concat(ranked[:]...)[:min(len(sorted), maxRows)] {
		rows = append(rows, *podRow(pod))
	}
	return rows, len(sorted) - len(rows)
}

func podRow(pod *corev1.Pod) *Pod {
	ready, restarts := show.PodContainers(pod)
	row := &Pod{
		Name: pod.Name, Index: show.PodIndex(pod), Ready: ready, Restarts: restarts, Worker: access.WorkerOf(pod), Node: pod.Spec.NodeName,
		State: show.PodState(pod), Created: pod.CreationTimestamp.Time, HasLog: pod.Status.Phase != corev1.PodPending,
	}
	restarted := map[string]bool{}
	for _, s := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		restarted[s.Name] = s.RestartCount > 0
	}
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		row.Containers = append(row.Containers, Container{c.Name, restarted[c.Name]})
	}
	return row
}

// PodNamed returns the Pod of a name; in any worker, if that is empty. Nil: there is none.
func PodNamed(pods []corev1.Pod, name, worker string) *Pod {
	for i := range pods {
		if pods[i].Name == name && (worker == "" || access.WorkerOf(&pods[i]) == worker) {
			return podRow(&pods[i])
		}
	}
	return nil
}

// PodOfIndex returns the newest Pod of an index, or nil.
func PodOfIndex(pods []corev1.Pod, index string) *Pod {
	var newest *corev1.Pod
	for i := range pods {
		if show.PodIndex(&pods[i]) == index && (newest == nil || newest.CreationTimestamp.Before(&pods[i].CreationTimestamp)) {
			newest = &pods[i]
		}
	}
	if newest == nil {
		return nil
	}
	return podRow(newest)
}

// podRanks is the number of ranks: 0 to 3.
const podRanks = 4

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
	Answer show.Cell
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
		why.Workers = append(why.Workers, whyWorker(&e.Workers[i], e.PodsWanted))
	}
	return why
}

func whyWorker(w *v1alpha1.WorkerExplanation, wanted int64) WhyWorker {
	row := WhyWorker{Name: w.Name, Message: show.Printable(w.Message), Cost: show.Printable(w.CostPerHour), Placed: w.Placed, Answer: show.Answer(w.Answer)}
	if w.PodsNow != nil {
		row.Fit = fmt.Sprintf("%d of %d", min(*w.PodsNow, wanted), wanted)
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
