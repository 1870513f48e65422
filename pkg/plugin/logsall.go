package plugin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/show"
)

// logsOfAll prints the logs of all Pods that the Job has now: one after the other, or, with -f, as
// their lines arrive. It reports a Pod whose log can't be read, and continues with the others.
func (c *cli) logsOfAll(cmd *cobra.Command, start *logStart, f *logsFlags) error {
	job := start.subresources.Job.Name
	list, err := start.pods(cmd.Context(), workerName(*f.choice.worker))
	if err != nil {
		return err
	}
	incomplete := c.incomplete("Pods of the Job "+job, list.Warnings)
	pods := show.SortedPods(list.Items)
	switch {
	case cmd.Context().Err() != nil: // the user ended the wait for Pods
		return nil
	case len(pods) == 0:
		c.say("The Job %s has no Pods now.", job)
		return incomplete
	case f.options.Follow && len(pods) > f.maxFollow:
		return usage(cmd, "the Job has %d Pods, and --max-log-requests is %d: raise it, or choose one by --index", len(pods), f.maxFollow)
	}
	out, atOnce := &lineWriter{out: c.Out}, 1
	if f.options.Follow {
		atOnce = len(pods)
	}
	several, failures := severalWorkers(pods), make([]error, len(pods))
	workqueue.ParallelizeUntil(cmd.Context(), atOnce, len(pods), func(i int) {
		stream := logStream{start: start, options: f.options.DeepCopy()}
		stream.of(&pods[i], several)
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
	return incomplete
}

// pods returns the Pods of the Job. What is followed has at least one, unless the Job ends without.
func (s *logStart) pods(ctx context.Context, worker string) (list *access.PodList, err error) {
	list = &access.PodList{}
	isEarly := func(ctx context.Context, err error) bool {
		return startsLater(err) || errors.Is(err, errNoPods) && s.unfinished(ctx)
	}
	err = s.await(ctx, isEarly, func() (err error) {
		list, err = s.subresources.PodsOf(ctx, askedWorkers(s.job(ctx), worker))
		if err == nil && len(list.Items) == 0 {
			err = errNoPods
		}
		return err
	})
	if errors.Is(err, errNoPods) {
		err = nil
	}
	return list, err
}

var errNoPods = errors.New("the Job has no Pods now")

// of has the stream read the log of a Pod. Its lines begin with the Pod and container, and with the
// worker, if the Job's Pods are in several.
func (s *logStream) of(pod *corev1.Pod, inSeveral bool) {
	s.choice = access.PodChoice{Pod: pod.Name, Worker: access.WorkerOf(pod)}
	s.options.Container = containerOf(pod, s.options.Container, true, io.Discard)
	s.prefix = fmt.Sprintf("pod/%s/%s", pod.Name, s.options.Container)
	if inSeveral {
		s.prefix = access.WorkerOf(pod) + " " + s.prefix
	}
}

func severalWorkers(pods []corev1.Pod) bool {
	for i := range pods { // a worker may have very many, which aren't copied
		if access.WorkerOf(&pods[i]) != access.WorkerOf(&pods[0]) {
			return true
		}
	}
	return false
}

// logsWithPrefix finds the Pod that the manager would choose, whose name begins each line.
func (c *cli) logsWithPrefix(ctx context.Context, stream logStream) error {
	list, err := stream.start.pods(ctx, stream.choice.Worker)
	if err != nil {
		return err
	}
	fitting := fittingPods(list.Items, stream.choice)
	named := stream.choice.Pod != "" || stream.choice.Index != nil
	switch {
	case len(fitting) == 0:
		return stream.copyTo(ctx, c.Out) // the manager explains what is wrong with the choice
	case named && (severalWorkers(fitting) || len(list.Warnings) > 0):
		return access.Advise(errors.Join(c.incomplete("Pods of the Job "+stream.start.subresources.Job.Name, list.Warnings),
			errors.New("more than one worker may have such a Pod")), "choose one by --worker, or leave --prefix out")
	}
	newest := slices.MaxFunc(fitting, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	stream.of(&newest, severalWorkers(list.Items))
	return (&lineWriter{out: c.Out}).copyLines(ctx, stream)
}

// fittingPods returns the Pods that match the choice.
func fittingPods(pods []corev1.Pod, choice access.PodChoice) []corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool {
		if choice.Index != nil {
			return show.PodIndex(&pod) != fmt.Sprint(*choice.Index)
		}
		return choice.Pod != "" && pod.Name != choice.Pod
	})
}

// lineWriter writes whole lines of several logs.
type lineWriter struct {
	mu  sync.Mutex
	out io.Writer
}

// maxLine is how much of a log is held at once. A longer line is cut into several.
const maxLine = 64 << 10

// copyLines writes a log. Each line begins with the stream's prefix.
func (w *lineWriter) copyLines(ctx context.Context, stream logStream) error {
	body, err := stream.open(ctx)
	if err != nil || body == nil {
		return err
	}
	defer body.Close()
	prefix := "[" + stream.prefix + "] "
	lines := bufio.NewReaderSize(body, maxLine)
	for {
		line, err := lines.ReadSlice('\n')
		if werr := w.line(prefix, line); werr != nil {
			return werr
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF), err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("the log was interrupted: %w", err)
		}
	}
}

// line writes a line, and adds the newline if it lacks one.
func (w *lineWriter) line(prefix string, line []byte) error {
	if len(line) == 0 {
		return nil
	}
	whole := append([]byte(prefix), line...)
	if whole[len(whole)-1] != '\n' {
		whole = append(whole, '\n')
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.out.Write(whole)
	return err
}
