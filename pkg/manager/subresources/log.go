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
)

// log streams the log of one container.
func (h *handler) log(w *answer, r *http.Request, c *call) error {
	which, options, err := parseLog(c.query)
	if err != nil {
		return err
	}
	at, err := h.find.find(r.Context(), c.key)
	if err != nil {
		return err
	}
	pod, err := at.pod(r.Context(), which, forLog)
	if err != nil {
		return err
	}
	if pod.Spec.NodeName == "" { // of which an API server would say that its log is empty
		return notYet("Pod %q in worker %q isn't scheduled on a node yet: it has no log", pod.Name, at.worker)
	}
	if options.Container, err = containerOf(pod, which.container); err != nil {
		return err
	}
	w.Header().Set(WorkerHeader, at.worker)
	w.Header().Set(PodHeader, pod.Name)
	return h.stream(w, r, at, pod, options)
}

// stream passes a log on as it comes.
func (h *handler) stream(w *answer, r *http.Request, at *home, pod *corev1.Pod, options *corev1.PodLogOptions) error {
	dog := newWatchdog(r.Context(), h.options.StallTimeout)
	defer dog.end()
	if options.Follow {
		dog.leash() // a container may be silent for hours
	}
	from, err := at.core.Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(dog.ctx)
	if err != nil {
		return fromWorker(at.worker, fmt.Sprintf("the log of Pod %q", pod.Name), dog.reason(err))
	}
	defer from.Close()
	setHeaders(w, "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	err = passOn(w, from, dog)
	if err == nil {
		// A worker that sees us hang up ends its answer, and may be heard doing so.
		err = dog.ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("the log of Pod %q in worker %q: %w", pod.Name, at.worker, dog.reason(err))
	}
	return nil
}

// passOn copies, and holds nothing back. The watchdog watches the worker: a client may take its
// time, as a pager does.
func passOn(w http.ResponseWriter, from io.Reader, dog *watchdog) error {
	const chunk = 32 << 10
	flush := http.NewResponseController(w)
	if err := flush.Flush(); err != nil {
		return err
	}
	buffer := make([]byte, chunk)
	for {
		dog.watch()
		n, err := from.Read(buffer)
		dog.rest()
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

// parseLog reads the parameters of a log: those of core/v1 PodLogOptions, and which Pod.
func parseLog(query url.Values) (wanted, *corev1.PodLogOptions, error) {
	none := wanted{}
	err := only(query, paramPod, paramIndex, paramContainer, "follow", "previous", "timestamps",
		"sinceSeconds", "sinceTime", "tailLines", "limitBytes")
	if err != nil {
		return none, nil, err
	}
	which, err := parseWanted(query)
	if err != nil {
		return none, nil, err
	}
	read := &reader{query: query}
	options := &corev1.PodLogOptions{
		Follow: read.flag("follow"), Previous: read.flag("previous"), Timestamps: read.flag("timestamps"),
		SinceSeconds: read.number("sinceSeconds", 1), SinceTime: read.time("sinceTime"),
		TailLines: read.number("tailLines", 0), LimitBytes: read.number("limitBytes", 1),
	}
	if options.SinceSeconds != nil && options.SinceTime != nil {
		read.fail("sinceSeconds and sinceTime: only one of them can be given")
	}
	return which, options, read.err
}

// reader reads parameters, and keeps the first error.
type reader struct {
	query url.Values
	err   error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = apierrors.NewBadRequest(fmt.Sprintf(format, args...))
	}
}

// flag is true for "true" and for the parameter without a value, as in Kubernetes.
func (r *reader) flag(name string) bool {
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

func (r *reader) number(name string, least int64) *int64 {
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

func (r *reader) time(name string) *metav1.Time {
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

// errStalled is the reason when a watchdog bites.
var errStalled = errors.New("nothing came for too long")

// watchdog ends a context when it's on watch for too long at a stretch. It begins with that when
// it's made.
type watchdog struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	within time.Duration
	timer  *time.Timer
	off    bool
}

func newWatchdog(parent context.Context, within time.Duration) *watchdog {
	d := &watchdog{within: within}
	d.ctx, d.cancel = context.WithCancelCause(parent)
	d.timer = time.AfterFunc(within, func() { d.cancel(errStalled) })
	return d
}

// watch puts it on watch, from now.
func (d *watchdog) watch() {
	if !d.off {
		d.timer.Reset(d.within)
	}
}

// rest ends its watch until the next.
func (d *watchdog) rest() { d.timer.Stop() }

// leash takes it out of service.
func (d *watchdog) leash() {
	d.off = true
	d.timer.Stop()
}

func (d *watchdog) end() {
	d.timer.Stop()
	d.cancel(nil)
}

// reason is a time-out when the watchdog was what ended it.
func (d *watchdog) reason(err error) error {
	if errors.Is(context.Cause(d.ctx), errStalled) {
		return fmt.Errorf("%w: %w", errStalled, context.DeadlineExceeded)
	}
	return err
}
