package report

import (
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/util/objectnames"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// What a report has at most, and how long its texts are.
const (
	maxConditions = 16
	maxContainers = 32 // of each kind
	maxImage      = 512
)

// numbers are the annotations that a report has: a Pod's completion index, and the failures that
// its index had before.
var numbers = []string{
	batchv1.JobCompletionIndexAnnotation, batchv1.JobIndexFailureCountAnnotation, batchv1.JobIndexIgnoredFailureCountAnnotation,
}

// Of returns the report of a worker's Pod: a Pod that has a status and the numbers alone.
func Of(pod *corev1.Pod) *corev1.Pod {
	report := &corev1.Pod{Status: status(&pod.Status)}
	for _, key := range numbers {
		if number, is := pod.Annotations[key]; is && isNumber(number) {
			metav1.SetMetaDataAnnotation(&report.ObjectMeta, key, number)
		}
	}
	return report
}

// bare is a Pod of whose status only the phase is left, and whether it's ready.
func bare(pod *corev1.Pod) *corev1.Pod {
	little := *pod
	little.Status = corev1.PodStatus{Phase: pod.Status.Phase}
	if Ready(&pod.Status) {
		little.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	return &little
}

// isNumber reports whether a text is a number as the Job controller writes it.
func isNumber(s string) bool {
	n, err := strconv.ParseInt(s, 10, 32)
	return err == nil && n >= 0 && strconv.FormatInt(n, 10) == s
}

func status(from *corev1.PodStatus) corev1.PodStatus {
	return corev1.PodStatus{
		Phase:                      phase(from.Phase),
		Reason:                     text.Reason(from.Reason),
		Message:                    text.Clean(from.Message, text.MaxMessage),
		StartTime:                  timeOf(from.StartTime),
		Conditions:                 conditions(from.Conditions),
		InitContainerStatuses:      containers(from.InitContainerStatuses),
		ContainerStatuses:          containers(from.ContainerStatuses),
		EphemeralContainerStatuses: nil, // they aren't the template's
	}
}

func phase(p corev1.PodPhase) corev1.PodPhase {
	switch p {
	case corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed:
		return p
	case "":
		return corev1.PodPending
	default:
		return corev1.PodUnknown
	}
}

// lookedAt is how many items of a list are looked at for each that is taken: others may be invalid.
const lookedAt = 4

func conditions(from []corev1.PodCondition) (clean []corev1.PodCondition) {
	seen := map[corev1.PodConditionType]bool{}
	for i := range from[:min(len(from), lookedAt*maxConditions)] {
		c := &from[i]
		if len(clean) == maxConditions || seen[c.Type] || !objectnames.IsLabelKey(string(c.Type)) || !isStatus(c.Status) {
			continue
		}
		seen[c.Type] = true
		clean = append(clean, corev1.PodCondition{
			Type: c.Type, Status: c.Status, LastTransitionTime: sane(c.LastTransitionTime),
			Reason: text.Reason(c.Reason), Message: text.Clean(c.Message, text.MaxMessage),
		})
	}
	return clean
}

func isStatus(s corev1.ConditionStatus) bool {
	return s == corev1.ConditionTrue || s == corev1.ConditionFalse || s == corev1.ConditionUnknown
}

func containers(from []corev1.ContainerStatus) (clean []corev1.ContainerStatus) {
	seen := map[string]bool{}
	for i := range from[:min(len(from), lookedAt*maxContainers)] {
		c := &from[i]
		if len(clean) == maxContainers || seen[c.Name] || !objectnames.IsDNSLabel(c.Name) {
			continue
		}
		seen[c.Name] = true
		clean = append(clean, corev1.ContainerStatus{
			Name: c.Name, State: state(&c.State), LastTerminationState: state(&corev1.ContainerState{Terminated: c.LastTerminationState.Terminated}),
			Ready: c.Ready, RestartCount: max(c.RestartCount, 0), Started: c.Started,
			Image: text.Clean(c.Image, maxImage), ImageID: text.Clean(c.ImageID, maxImage), ContainerID: containerID(c.ContainerID),
		})
	}
	return clean
}

// state has one of the three at most.
func state(from *corev1.ContainerState) corev1.ContainerState {
	switch {
	case from.Terminated != nil:
		t := from.Terminated
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: t.ExitCode, Signal: t.Signal, Reason: text.Reason(t.Reason), Message: text.Clean(t.Message, text.MaxMessage),
			StartedAt: sane(t.StartedAt), FinishedAt: sane(t.FinishedAt), ContainerID: containerID(t.ContainerID),
		}}
	case from.Running != nil:
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: sane(from.Running.StartedAt)}}
	case from.Waiting != nil:
		w := from.Waiting
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: text.Reason(w.Reason), Message: text.Clean(w.Message, text.MaxMessage)}}
	default:
		return corev1.ContainerState{}
	}
}

// containerID is one of the form that kubelets write; empty: it isn't.
func containerID(id string) string {
	id = text.Clean(id, maxImage)
	if kind, _, is := strings.Cut(id, "://"); !is || kind == "" {
		return ""
	}
	return id
}

func timeOf(t *metav1.Time) *metav1.Time {
	if t == nil {
		return nil
	}
	clean := sane(*t)
	if clean.IsZero() {
		return nil
	}
	return &clean
}

// sane is a time in whole seconds that every JSON parser reads; zero for others.
func sane(t metav1.Time) metav1.Time {
	if y := t.UTC().Year(); y < 1970 || y > 9998 {
		return metav1.Time{}
	}
	return metav1.NewTime(t.UTC().Truncate(time.Second))
}
