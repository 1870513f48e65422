package show

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/jobview"
)

// Word is a text with its tone: good, warn, bad, faint, or "".
type Word struct{ Text, Tone string }

func (c cell) word() Word { return Word{Printable(c.text), c.tone} }

// JobState is the state of a hub Job.
func JobState(state jobview.State) Word { return stateCell(state).word() }

// WorkerState is the state of a worker.
func WorkerState(w *v1alpha1.WorkerCluster) Word { return workerState(w).word() }

// PodState is the state of a Pod, as kubectl shows it.
func PodState(pod *corev1.Pod) Word { return podStatus(pod).word() }

// Answer is the manager's answer about a worker.
func Answer(answer v1alpha1.PlacementAnswer) Word {
	if c, known := answers[answer]; known {
		return c.word()
	}
	return Word{Text: Printable(string(answer))} // of a newer manager
}
