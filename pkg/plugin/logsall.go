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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/cmd/util/podcmd"

	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/show"
)

// logsOfAll prints the logs of all Pods that the Job has now: one after the other, or, followed, as
// their lines come. A Pod without a log yet, or any more, is told of, and keeps no other from being
// printed.
func (c *cli) logsOfAll(cmd *cobra.Command, subresources *access.Subresources, job types.NamespacedName, f *logsFlags) error {
	list, err := subresources.Pods(cmd.Context(), job)
	if err != nil {
		return err
	}
	pods := show.SortedPods(list.Items)
	switch {
	case len(pods) == 0:
		c.say("The Job %s has no Pods now.", job.Name)
		return nil
	case f.options.Follow && len(pods) > f.maxFollow:
		return usage(cmd, "the Job has %d Pods, and --max-log-requests is %d: raise it, or choose one by --index", len(pods), f.maxFollow)
	}
	out, atOnce := &lineWriter{out: c.Out}, 1
	if f.options.Follow {
		atOnce = len(pods)
	}
	failures := eachOf(pods, atOnce, func(pod *corev1.Pod) error {
		stream := logStream{subresources, job, access.PodChoice{Pod: pod.Name}, f.options.DeepCopy(), f.patience}
		stream.options.Container = containerOf(pod, f.options.Container)
		return out.copyLines(cmd.Context(), stream)
	})
	for i, err := range failures {
		if err != nil {
			c.say("%s: %v", pods[i].Name, err)
		}
	}
	if errors.Join(failures...) != nil {
		return fmt.Errorf("not all logs of the Job %s could be read", job.Name)
	}
	return nil
}

// logsWithPrefix finds out which Pod is meant, so that its lines can say so.
func (c *cli) logsWithPrefix(ctx context.Context, stream logStream) error {
	list, err := stream.subresources.Pods(ctx, stream.job)
	if err != nil {
		return err
	}
	pod := chosenPod(list.Items, stream.choice)
	if pod == nil {
		return stream.copyTo(ctx, c.Out) // the manager says what is wrong with the choice
	}
	stream.choice = access.PodChoice{Pod: pod.Name}
	stream.options.Container = containerOf(pod, stream.options.Container)
	return (&lineWriter{out: c.Out}).copyLines(ctx, stream)
}

// chosenPod is the newest Pod that fits the choice, or nil.
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

// containerOf is the container that is meant: the default of kubectl, if none is named.
func containerOf(pod *corev1.Pod, name string) string {
	if name != "" {
		return name
	}
	container, err := podcmd.FindOrDefaultContainerByName(pod, "", true, io.Discard)
	if err != nil {
		return "" // the worker says what is wrong
	}
	return container.Name
}

// eachOf does something with each Pod, so many at once.
func eachOf(pods []corev1.Pod, atOnce int, do func(*corev1.Pod) error) []error {
	failures, places := make([]error, len(pods)), make(chan struct{}, atOnce)
	var running sync.WaitGroup
	for i := range pods {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			failures[i] = do(&pods[i])
		})
	}
	running.Wait()
	return failures
}

// lineWriter writes whole lines of several logs.
type lineWriter struct {
	mu  sync.Mutex
	out io.Writer
}

// copyLines writes a log, each line behind the name of its Pod and container.
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
			return fmt.Errorf("the log broke off: %w", err)
		}
	}
}

// line writes a line, which may lack its end.
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
