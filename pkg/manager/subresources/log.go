package subresources

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// log streams the log of one container.
func (h *handler) log(w *responseWriter, r *http.Request, req *request) error {
	which, options, err := parseLog(req.query)
	if err != nil {
		return err
	}
	at, err := h.find.pod(r.Context(), req, which, forLog)
	if err != nil {
		return err
	}
	pod := at.pod
	if pod.Spec.NodeName == "" { // an API server would return an empty log
		return notYet("Pod %q in worker %q isn't scheduled on a node yet: it has no log", pod.Name, at.worker)
	}
	container, err := containerOf(pod, which.container)
	if err != nil {
		return err
	}
	options.Container = container.Name
	at.name(w)
	return h.stream(w, r, at.link, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, options)
}

// stream copies a log from the worker to the client. While it does, it holds no object of the
// worker.
func (h *handler) stream(w *responseWriter, r *http.Request, at *link, pod types.NamespacedName, options *corev1.PodLogOptions) error {
	stall := newStallTimer(r.Context(), h.options.StallTimeout)
	defer stall.end()
	if options.Follow {
		stall.disable() // a container may be silent for hours
	}
	from, err := at.core.Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(stall.ctx)
	if err != nil {
		return fromWorker(at.worker, fmt.Sprintf("the log of Pod %q", pod.Name), stall.reason(err))
	}
	defer from.Close()
	setHeaders(w, "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	err = copyFlushing(w, from, stall)
	if err == nil {
		// A worker ends its response cleanly when this end is cancelled.
		err = stall.ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("the log of Pod %q in worker %q: %w", pod.Name, at.worker, stall.reason(err))
	}
	return nil
}

// copyFlushing copies and flushes each read. The stall timer runs while it waits for the worker: a
// client may be slow, as a pager is.
func copyFlushing(w http.ResponseWriter, from io.Reader, stall *stallTimer) error {
	flush := http.NewResponseController(w)
	if err := flush.Flush(); err != nil {
		return err
	}
	buffer := make([]byte, 32<<10)
	for {
		stall.start()
		n, err := from.Read(buffer)
		stall.stop()
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				return err
			}
			if err := flush.Flush(); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// parseLog parses the parameters of a log: those of core/v1 PodLogOptions, and the choice of a Pod.
func parseLog(query url.Values) (podChoice, *corev1.PodLogOptions, error) {
	which, err := parsePodChoice(query)
	if err != nil {
		return podChoice{}, nil, err
	}
	read := &paramParser{query: query}
	options := &corev1.PodLogOptions{
		Follow: read.flag("follow"), Previous: read.flag("previous"), Timestamps: read.flag("timestamps"),
		SinceSeconds: read.number("sinceSeconds", 1), SinceTime: read.time("sinceTime"),
		TailLines: read.number("tailLines", 0), LimitBytes: read.number("limitBytes", 1),
	}
	if stream := read.query.Get("stream"); stream != "" && stream != corev1.LogStreamAll { // which older workers don't know
		options.Stream = &stream
	}
	if options.SinceSeconds != nil && options.SinceTime != nil {
		read.fail("sinceSeconds and sinceTime: only one of them can be given")
	}
	return which, options, read.err
}

// paramParser parses parameters, and keeps the first error.
type paramParser struct {
	query url.Values
	err   error
}

func (r *paramParser) fail(format string, args ...any) {
	if r.err == nil {
		r.err = apierrors.NewBadRequest(fmt.Sprintf(format, args...))
	}
}

// flag is true for "true" and for the parameter without a value, as in Kubernetes.
func (r *paramParser) flag(name string) bool {
	if !r.query.Has(name) {
		return false
	}
	text := r.query.Get(name)
	if text == "" {
		return true
	}
	value, err := strconv.ParseBool(text)
	if err != nil {
		r.fail("%s: %q is neither true nor false", name, shorten(text))
	}
	return value
}

func (r *paramParser) number(name string, least int64) *int64 {
	text := r.query.Get(name)
	if text == "" {
		return nil
	}
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil || value < least {
		r.fail("%s: %q isn't a number from %d", name, shorten(text), least)
		return nil
	}
	return &value
}

func (r *paramParser) time(name string) *metav1.Time {
	text := r.query.Get(name)
	if text == "" {
		return nil
	}
	value, err := time.Parse(time.RFC3339, text)
	if err != nil {
		r.fail("%s: %q isn't a time such as 2026-01-02T15:04:05Z", name, shorten(text))
		return nil
	}
	return &metav1.Time{Time: value}
}

// errStalled is the cause when a stall timer cancels its context.
var errStalled = errors.New("no data for too long")

// stallTimer cancels its context when it runs for too long without a stop. A new one runs.
type stallTimer struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	within time.Duration
	timer  *time.Timer
	off    bool // disabled
}

func newStallTimer(parent context.Context, within time.Duration) *stallTimer {
	s := &stallTimer{within: within}
	s.ctx, s.cancel = context.WithCancelCause(parent)
	s.timer = time.AfterFunc(within, func() { s.cancel(errStalled) })
	return s
}

// start runs the timer from zero.
func (s *stallTimer) start() {
	if !s.off {
		s.timer.Reset(s.within)
	}
}

// stop stops the timer until the next start.
func (s *stallTimer) stop() { s.timer.Stop() }

// disable stops the timer for good.
func (s *stallTimer) disable() {
	s.off = true
	s.timer.Stop()
}

func (s *stallTimer) end() {
	s.timer.Stop()
	s.cancel(nil)
}

// reason turns an error that the timer caused into a timeout.
func (s *stallTimer) reason(err error) error {
	if errors.Is(context.Cause(s.ctx), errStalled) {
		return fmt.Errorf("%w: %w", errStalled, context.DeadlineExceeded)
	}
	return err
}
