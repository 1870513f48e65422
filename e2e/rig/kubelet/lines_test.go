package kubelet

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func pod(state corev1.ContainerState) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: map[string]string{batchv1.JobCompletionIndexAnnotation: "3"}},
		Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "c", State: state}}},
	}
}

func running() *corev1.Pod {
	return pod(corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Time{Time: start}}})
}

func ended() *corev1.Pod {
	return pod(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: 3, StartedAt: metav1.Time{Time: start}, FinishedAt: metav1.Time{Time: start.Add(time.Second)},
	}})
}

func TestLines(t *testing.T) {
	rows := map[string]struct {
		pod  *corev1.Pod
		now  time.Duration
		want int
		last string
		done bool
	}{
		"waiting":       {pod(corev1.ContainerState{}), 0, 0, "", false},
		"just started":  {running(), 0, 1, "p/c started, index 3", false},
		"runs":          {running(), 350 * time.Millisecond, 4, "line 3", false},
		"ended":         {ended(), time.Hour, 11, "ended with exit code 3", true},
		"as it ends":    {ended(), time.Second, 11, "ended with exit code 3", true},
		"no such thing": {&corev1.Pod{}, 0, 0, "", false},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			lines, done := Lines(row.pod, "c", start.Add(row.now))
			if len(lines) != row.want || done != row.done || row.want > 0 && lines[len(lines)-1].Text != row.last {
				t.Errorf("%d lines, done %t: %v", len(lines), done, lines)
			}
		})
	}
}

func TestChoose(t *testing.T) {
	lines, _ := Lines(ended(), "c", start)
	two, long := int64(2), int64(1000)
	rows := map[string]struct {
		options corev1.PodLogOptions
		want    int
		first   string
	}{
		"all":           {corev1.PodLogOptions{}, 11, "p/c started, index 3"},
		"tail":          {corev1.PodLogOptions{TailLines: &two}, 2, "line 9"},
		"a longer tail": {corev1.PodLogOptions{TailLines: &long}, 11, "p/c started, index 3"},
		"since time":    {corev1.PodLogOptions{SinceTime: &metav1.Time{Time: start.Add(500 * time.Millisecond)}}, 6, "line 5"},
		"since seconds": {corev1.PodLogOptions{SinceSeconds: &two}, 2, "line 9"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			got := choose(lines, &row.options, start.Add(2*time.Second+850*time.Millisecond))
			if len(got) != row.want || got[0].Text != row.first {
				t.Errorf("%d lines: %v", len(got), got)
			}
		})
	}
	if got := text(lines[:1], true); !strings.HasPrefix(got, "2026-01-02T03:04:05Z p/c") {
		t.Errorf("with timestamps: %q", got)
	}
}

// A log that is followed ends with the container's end, however far it was.
func TestAfter(t *testing.T) {
	lines, _ := Lines(ended(), "c", start)
	rows := map[string]struct {
		sent int
		done bool
		want int
	}{
		"nothing sent":    {0, false, 11},
		"some sent":       {9, false, 2},
		"nothing new":     {11, false, 0},
		"the end":         {10, true, 1},
		"beyond the end":  {15, true, 1},
		"ahead, and runs": {15, false, 0},
	}
	for name, row := range rows {
		if got := after(lines, row.sent, row.done); len(got) != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
