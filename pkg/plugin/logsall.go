package plugin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/kubectl/pkg/cmd/util/podcmd"

	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/show"
)

// logsOfAll prints the logs of all Pods that the Job has now: one after the other, or, with -f, as
// their lines arrive. It reports a Pod whose log can't be read, and continues with the others.
func (c *cli) logsOfAll(cmd *cobra.Command, subresources *access.Subresources, f *logsFlags) error {
	job := subresources.Job.Name
	list, err := subresources.Pods(cmd.Context())
	if err != nil {
		return err
	}
	pods := show.SortedPods(list.Items)
	switch {
	case len(pods) == 0:
		c.say("The Job %s has no Pods now.", job)
		return nil
	case f.options.Follow && len(pods) > f.maxFollow:
		return usage(cmd, "the Job has %d Pods, and --max-log-requests is %d: raise it, or choose one by --index", len(pods), f.maxFollow)
	}
	out, atOnce := &lineWriter{out: c.Out}, 1
	if f.options.Follow {
		atOnce = len(pods)
	}
	failures := make([]error, len(pods))
	workqueue.ParallelizeUntil(cmd.Context(), atOnce, len(pods), func(i int) {
		stream := logStream{subresources, access.PodChoice{Pod: pods[i].Name}, f.options.DeepCopy(), f.startTimeout}
		stream.options.Container = containerOf(&pods[i], f.options.Container)
		failures[i] = out.copyLines(cmd.Context(), stream)
	})
	for i, err := range failures {
		if err != nil {
			c.say("%s: %v", pods[i].Name, err)
		}
	}
	if errors.Join(failures...) != nil {
		return fmt.Errorf("not all logs of the Job %s could be read", job)
	}
	return nil
}

// logsWithPrefix finds the Pod that the manager would choose, whose name begins each line.
func (c *cli) logsWithPrefix(ctx context.Context, stream logStream) error {
	list, err := stream.subresources.Pods(ctx)
	if err != nil {
		return err
	}
	pod := chosenPod(list.Items, stream.choice)
	if pod == nil {
		return stream.copyTo(ctx, c.Out) // the manager explains what is wrong with the choice
	}
	stream.choice = access.PodChoice{Pod: pod.Name}
	stream.options.Container = containerOf(pod, stream.options.Container)
	return (&lineWriter{out: c.Out}).copyLines(ctx, stream)
}

// chosenPod returns the newest Pod that matches the choice, or nil.
func chosenPod(pods []corev1.Pod, choice access.PodChoice) *corev1.Pod {
	var newest *corev1.Pod
	for i := range pods {
		pod := &pods[i]
		fits := choice.Pod == "" || pod.Name == choice.Pod
		if choice.Index != nil {
			fits = show.PodIndex(pod) == fmt.Sprint(*choice.Index)
		}
		if fits && (newest == nil || newest.CreationTimestamp.Before(&pod.CreationTimestamp)) {
			newest = pod
		}
	}
	return newest
}

// containerOf returns the name of the container, by default kubectl's default.
func containerOf(pod *corev1.Pod, name string) string {
	if name != "" {
		return name
	}
	container, err := podcmd.FindOrDefaultContainerByName(pod, "", true, io.Discard)
	if err != nil {
		return "" // the worker explains what is wrong
	}
	return container.Name
}

// lineWriter writes whole lines of several logs.
type lineWriter struct {
	mu  sync.Mutex
	out io.Writer
}

// copyLines writes a log. Each line begins with the name of its Pod and container.
func (w *lineWriter) copyLines(ctx context.Context, stream logStream) error {
	body, err := stream.open(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	prefix := fmt.Sprintf("[pod/%s/%s] ", stream.choice.Pod, stream.options.Container)
	lines := bufio.NewReader(body)
	for {
		line, err := lines.ReadString('\n')
		if werr := w.line(prefix, line); werr != nil {
			return werr
		}
		switch {
		case errors.Is(err, io.EOF), err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("the log was interrupted: %w", err)
		}
	}
}

// line writes a line, and adds the newline if it lacks one.
func (w *lineWriter) line(prefix, line string) error {
	if line == "" {
		return nil
	}
	if line[len(line)-1] != '\n' {
		line += "\n"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := io.WriteString(w.out, prefix+line)
	return err
}
