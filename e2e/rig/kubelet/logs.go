package kubelet

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (s *Server) pod(r *http.Request) (*corev1.Pod, error) {
	return s.client.CoreV1().Pods(r.PathValue("namespace")).Get(r.Context(), r.PathValue("pod"), metav1.GetOptions{})
}

func (s *Server) logs(w http.ResponseWriter, r *http.Request) {
	options, err := logOptions(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	pod, err := s.pod(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	container := r.PathValue("container")
	l, ok := lifeOf(pod, container)
	switch {
	case options.Previous:
		http.Error(w, fmt.Sprintf("previous terminated container %q in pod %q not found", container, pod.Name), http.StatusBadRequest)
		return
	case !ok:
		http.Error(w, fmt.Sprintf("container %q in pod %q is waiting to start: ContainerCreating", container, pod.Name), http.StatusBadRequest)
		return
	}
	out := &limited{w: w, left: -1}
	if options.LimitBytes != nil {
		out.left = *options.LimitBytes
	}
	s.send(r, out, l, options)
}

// send sends what there is, and, if the log is followed, what comes until the container ends.
func (s *Server) send(r *http.Request, out *limited, l life, options *corev1.PodLogOptions) {
	sent, tick := 0, time.NewTicker(Tick)
	defer tick.Stop()
	for first := true; ; first = false {
		pod, err := s.pod(r)
		if err != nil {
			return
		}
		lines, done := Lines(pod, l.container, time.Now())
		fresh := after(lines, sent, done)
		if first {
			fresh = choose(lines, options, time.Now())
		}
		if !out.write(text(fresh, options.Timestamps)) || done || !options.Follow {
			return
		}
		sent = len(lines)
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

// limited writes at most so many bytes; less than zero: any number.
type limited struct {
	w    http.ResponseWriter
	left int64
}

// write says whether more can be written.
func (l *limited) write(text string) bool {
	if l.left >= 0 && int64(len(text)) >= l.left {
		text = text[:l.left]
		_, _ = io.WriteString(l.w, text)
		return false
	}
	if l.left >= 0 {
		l.left -= int64(len(text))
	}
	if _, err := io.WriteString(l.w, text); err != nil {
		return false
	}
	return http.NewResponseController(l.w).Flush() == nil
}

// logOptions reads the parameters that the API server sends.
func logOptions(query url.Values) (*corev1.PodLogOptions, error) {
	o := &corev1.PodLogOptions{
		Follow: query.Get("follow") == "true", Previous: query.Get("previous") == "true", Timestamps: query.Get("timestamps") == "true",
	}
	for name, field := range map[string]**int64{"tailLines": &o.TailLines, "limitBytes": &o.LimitBytes, "sinceSeconds": &o.SinceSeconds} {
		if query.Get(name) == "" {
			continue
		}
		value, err := strconv.ParseInt(query.Get(name), 10, 64)
		if err != nil {
			return nil, err
		}
		*field = &value
	}
	if at := query.Get("sinceTime"); at != "" {
		value, err := time.Parse(time.RFC3339, at)
		if err != nil {
			return nil, err
		}
		o.SinceTime = &metav1.Time{Time: value}
	}
	return o, nil
}
