package state

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// Worker is a WorkerCluster.
type Worker struct {
	Name  string
	Ready bool
	// Reason and Message of the Ready condition.
	Reason, Message string
	Version         string
	Nodes, Jobs     int32
	// FreeCPU and CPU are in thousandths of a core.
	FreeCPU, CPU int64
}

// SawWorker takes over what a WorkerCluster says.
func (s *State) SawWorker(wc *v1alpha1.WorkerCluster) {
	w := Worker{
		Name: wc.Name, Reason: "Registered", Version: wc.Status.KubernetesVersion,
		Nodes: wc.Status.Nodes, Jobs: wc.Status.Jobs,
		FreeCPU: milli(wc.Status.Free), CPU: milli(wc.Status.Allocatable),
	}
	if c := meta.FindStatusCondition(wc.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		w.Ready, w.Reason, w.Message = c.Status == metav1.ConditionTrue, c.Reason, c.Message
	}
	i, found := slices.BinarySearchFunc(s.Workers, w.Name, byName)
	if found {
		s.Workers[i] = w
		return
	}
	s.Workers = slices.Insert(s.Workers, i, w)
}

// LostWorker removes a WorkerCluster that was deleted.
func (s *State) LostWorker(name string) {
	s.Workers = slices.DeleteFunc(s.Workers, func(w Worker) bool { return w.Name == name })
}

func byName(w Worker, name string) int { return cmp.Compare(w.Name, name) }

func milli(list corev1.ResourceList) int64 { return list.Cpu().MilliValue() }
