package kubelet

import (
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// Tick is the time between two lines of a running container.
const Tick = 100 * time.Millisecond

// Line is one line of a log.
type Line struct {
	Time time.Time
	Text string
}

// life is the time of a container.
type life struct {
	pod, container, index string
	start                 time.Time
	ended                 bool
	end                   time.Time
	code                  int32
}

// lifeOf reads a container's life from its Pod; ok is false if it hasn't begun.
func lifeOf(pod *corev1.Pod, container string) (l life, ok bool) {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name != container {
			continue
		}
		l = life{pod: pod.Name, container: container, index: pod.Annotations[batchv1.JobCompletionIndexAnnotation]}
		switch s := status.State; {
		case s.Running != nil:
			l.start = s.Running.StartedAt.Time
			return l, true
		case s.Terminated != nil:
			l.start, l.end, l.ended, l.code = s.Terminated.StartedAt.Time, s.Terminated.FinishedAt.Time, true, s.Terminated.ExitCode
			return l, true
		}
	}
	return life{}, false
}

// Lines are what a container has said by now; done says that there will be no more.
func Lines(pod *corev1.Pod, container string, now time.Time) (lines []Line, done bool) {
	l, ok := lifeOf(pod, container)
	if !ok {
		return nil, false
	}
	first := l.pod + "/" + l.container + " started"
	if l.index != "" {
		first += ", index " + l.index
	}
	lines = []Line{{l.start, first}}
	until := now
	if l.ended {
		until = l.end
	}
	for n := 1; ; n++ {
		at := l.start.Add(time.Duration(n) * Tick)
		if !at.Before(until) {
			break
		}
		lines = append(lines, Line{at, fmt.Sprintf("line %d", n)})
	}
	if l.ended {
		lines = append(lines, Line{l.end, fmt.Sprintf("ended with exit code %d", l.code)})
	}
	return lines, l.ended
}

// after are the lines that come after so many that were sent. The last one comes in any case, even
// if lines were sent that turn out to be later than the end.
func after(lines []Line, sent int, done bool) []Line {
	if done && sent >= len(lines) {
		return lines[len(lines)-1:]
	}
	return lines[min(sent, len(lines)):]
}

// choose applies the options that select from a log.
func choose(lines []Line, o *corev1.PodLogOptions, now time.Time) []Line {
	since := time.Time{}
	if o.SinceTime != nil {
		since = o.SinceTime.Time
	}
	if o.SinceSeconds != nil {
		since = now.Add(-time.Duration(*o.SinceSeconds) * time.Second)
	}
	for len(lines) > 0 && lines[0].Time.Before(since) {
		lines = lines[1:]
	}
	if o.TailLines != nil {
		lines = lines[max(0, len(lines)-int(*o.TailLines)):]
	}
	return lines
}

// text is how lines are sent.
func text(lines []Line, timestamps bool) string {
	var out strings.Builder
	for _, line := range lines {
		if timestamps {
			out.WriteString(line.Time.UTC().Format(time.RFC3339Nano) + " ")
		}
		out.WriteString(line.Text + "\n")
	}
	return out.String()
}
