package subresources

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// sink counts what is written for a user.
type sink struct {
	header       http.Header
	all, largest int
	// meanwhile is called in each write; nil: nothing is.
	meanwhile func()
	deadline  time.Time
}

func (s *sink) Header() http.Header { return s.header }
func (s *sink) WriteHeader(int)     {}

func (s *sink) Write(content []byte) (int, error) {
	s.all += len(content)
	s.largest = max(s.largest, len(content))
	if s.meanwhile != nil {
		s.meanwhile()
	}
	return len(content), nil
}

func (s *sink) SetWriteDeadline(at time.Time) error {
	s.deadline = at
	return nil
}

// asks counts what the user gets.
func (w *world) asks(what string) *sink {
	out := &sink{header: http.Header{}}
	w.asksFor(what, out)
	return out
}

func (w *world) asksFor(what string, out *sink) {
	path := apiRoot + "/namespaces/" + namespace + "/jobs/job/" + what
	w.api.Config.Handler.ServeHTTP(out, httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, path, nil))
}

// TestTextsOfAWorkerDontGrow: of some, JSON can make six times as many bytes. Events are never all
// in memory as that.
func TestTextsOfAWorkerDontGrow(t *testing.T) {
	const chunks, perChunk, length, most = 20, 20, 8_000, 100_000
	for _, text := range []string{"<", `\u0001`} {
		w := newWorld(t)
		event := fmt.Sprintf(`,{"metadata":{"name":"a"},"message":"%s"}`, strings.Repeat(text, length))
		sent := 0
		w.worker.on("/api/v1/namespaces/team/events", func(out http.ResponseWriter, _ *http.Request) {
			more := "more"
			if sent++; sent%chunks == 0 {
				more = ""
			}
			out.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(out, `{"kind":"EventList","apiVersion":"v1","metadata":{"continue":%q},"items":[%s]}`, more, strings.Repeat(event, perChunk)[1:])
		})
		got := w.asks("events")
		if got.all < chunks*perChunk*length || got.all > chunks*perChunk*(length*len(text)+1_000) || got.largest > most {
			t.Errorf("events of %s: %d KiB are written, of which %d KiB at once", text, got.all>>10, got.largest>>10)
		}
	}
	w := newWorld(t)
	annotations := map[string]string{"x": strings.Repeat("<", 200<<10)}
	w.worker.object("/apis/batch/v1/namespaces/team/jobs/job", mirrorJob(func(j *batchv1.Job) { j.Annotations["x"] = annotations["x"] }))
	w.worker.object(podsPath, corev1.PodList{Items: []corev1.Pod{*pod("job-a", func(p *corev1.Pod) { p.Annotations = annotations })}})
	for _, what := range []string{"mirror", "pods"} {
		if got := w.asks(what); got.all < 200<<10 || got.all > 300<<10 {
			t.Errorf("%s: %d KiB are written of 200 KiB", what, got.all>>10)
		}
	}
}
