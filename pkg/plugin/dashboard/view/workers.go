package view

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/plugin/show"
)

// Worker is the card of one worker.
type Worker struct {
	Name  string
	State show.Cell
	// Since is when the worker stopped being Ready; zero: it is.
	Since time.Time
	// Lost reports that its Jobs may continue elsewhere.
	Lost bool
	// Problem says in words what is wrong.
	Problem    string
	Jobs       int32
	Nodes      int32
	Version    string
	Controller string
	Weight     int32
	// Cost of its resources per hour; empty: it has no prices.
	Cost        string
	Labels      string
	LastContact time.Time
	Resources   []Resource
	// Stale: the worker is out of touch, so that its resources are those of its last answer.
	Stale bool
}

// Resource is the use of one resource of a worker.
type Resource struct {
	Name string
	// Used, Total and Free are for reading.
	Used, Total, Free string
	// Percent of the total that is used.
	Percent int
	// Tone is warn from 80% on, and bad from 95%.
	Tone string
}

// Workers makes the cards of workers: those with a problem first, then by name.
func Workers(items []*v1alpha1.WorkerCluster) []Worker {
	cards := make([]Worker, 0, len(items))
	for _, w := range items {
		cards = append(cards, workerCard(w))
	}
	slices.SortFunc(cards, func(a, b Worker) int {
		return cmp.Or(cmp.Compare(urgency[a.State.Tone], urgency[b.State.Tone]), cmp.Compare(a.Name, b.Name))
	})
	return cards
}

// urgency orders what needs attention before what doesn't.
var urgency = map[string]int{"bad": -2, "warn": -1}

func workerCard(w *v1alpha1.WorkerCluster) Worker {
	card := Worker{
		Name: w.Name, State: show.WorkerState(w),
		Lost: meta.IsStatusConditionTrue(w.Status.Conditions, v1alpha1.ConditionLost),
		Jobs: w.Status.Jobs, Nodes: w.Status.Nodes, Version: w.Status.KubernetesVersion,
		Controller: string(w.Spec.JobController), Weight: w.Spec.Weight, Cost: show.Cost(w.Spec.Cost), Labels: labels.Set(w.Labels).String(),
		Resources: resources(w), Stale: jobview.IsOutOfTouch(w),
	}
	if w.Status.LastContactTime != nil {
		card.LastContact = w.Status.LastContactTime.Time
	}
	if ready := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionReady); ready != nil && ready.Status != metav1.ConditionTrue {
		card.Since, card.Problem = ready.LastTransitionTime.Time, show.Printable(ready.Message)
	} else if takes := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionSchedulable); takes != nil && takes.Status != metav1.ConditionTrue {
		card.Problem = show.Printable(takes.Message)
	}
	return card
}

// resources lists CPU, memory and extended resources, such as GPUs; pods and storage, which seldom
// decide, are left out.
func resources(w *v1alpha1.WorkerCluster) []Resource {
	names := slices.SortedFunc(maps.Keys(w.Status.Allocatable), func(a, b corev1.ResourceName) int {
		return cmp.Or(cmp.Compare(resourceOrder[a], resourceOrder[b]), cmp.Compare(a, b))
	})
	var rows []Resource
	for _, name := range names {
		total, used := w.Status.Allocatable[name], w.Status.Requested[name]
		if total.IsZero() || resourceOrder[name] == 0 && !strings.Contains(string(name), "/") {
			continue
		}
		rows = append(rows, resourceOf(string(name), name, used, total))
	}
	return rows
}

// resourceOf is a row about what is used of a resource.
func resourceOf(title string, name corev1.ResourceName, used, total resource.Quantity) Resource {
	free, share := total.DeepCopy(), 0.0
	free.Sub(used)
	if !total.IsZero() {
		share = used.AsApproximateFloat64() / total.AsApproximateFloat64()
	}
	return Resource{
		Name: title, Used: show.Amount(name, used), Total: show.Amount(name, total), Free: show.Amount(name, free),
		Percent: int(100 * min(max(share, 0), 1)), Tone: show.Pressure(share),
	}
}

var resourceOrder = map[corev1.ResourceName]int{corev1.ResourceCPU: -2, corev1.ResourceMemory: -1}
