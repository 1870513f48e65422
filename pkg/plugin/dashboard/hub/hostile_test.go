package hub

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// manyEvents answers lists of very many events, page by page, and counts the bytes.
type manyEvents struct {
	n    int
	of   func(i int) corev1.Event
	sent atomic.Int64
}

func (m *manyEvents) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	limit, _ := strconv.Atoi(query.Get("limit"))
	from, _ := strconv.Atoi(query.Get("continue"))
	if limit == 0 {
		limit = m.n
	}
	about, end := metav1.ListMeta{ResourceVersion: "7"}, min(from+limit, m.n)
	if end < m.n {
		about.Continue = strconv.Itoa(end)
	}
	text, _ := json.Marshal(about)
	var page bytes.Buffer
	fmt.Fprintf(&page, `{"apiVersion": "v1", "kind": "EventList", "metadata": %s, "items": [`, text)
	for i := from; i < end; i++ {
		text, _ := json.Marshal(m.of(i))
		page.WriteString(strings.Repeat(",", min(i-from, 1)))
		page.Write(text)
	}
	page.WriteString("]}")
	w.Header().Set("Content-Type", "application/json")
	sent, _ := page.WriteTo(w)
	m.sent.Add(sent)
}

// A tenant writes very many events, about a Job and about Jobs that never were: what the last one
// of the Job says is kept, and its page shows some of them.
func TestVeryManyEvents(t *testing.T) {
	const n = 5000
	for name, uid := range map[string]func(i int) types.UID{
		"about a Job":                func(int) types.UID { return "1" },
		"about Jobs that never were": func(i int) types.UID { return types.UID(fmt.Sprint(i % (n - 1))) }, // the Job's is 1
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			events := &manyEvents{n: n, of: func(i int) corev1.Event {
				return corev1.Event{
					ObjectMeta:     metav1.ObjectMeta{Namespace: "team-a", Name: fmt.Sprint(i)},
					InvolvedObject: corev1.ObjectReference{Kind: "Job", UID: uid(i)}, ReportingController: v1alpha1.EventController,
					Reason: fmt.Sprint("r", i), Message: strings.Repeat("x", 1000), LastTimestamp: metav1.NewTime(began.Add(time.Duration(i) * time.Second)),
				}
			}}
			a := &api{answers: answers()}
			a.answers[eventsPath], a.answers[ownPath] = events, events
			before := costtest.Heap()
			h, _, _ := run(t, a)
			until(t, h, "all is read", allLive(h))
			if held := costtest.Heap() - before; held > 4<<20 {
				t.Errorf("%d MiB are held", held>>20)
			}
			job := h.Jobs()[0]
			last := n - 1
			if name != "about a Job" {
				last = 1
			}
			if is := h.Around()(job).Reason.Reason; is != fmt.Sprint("r", last) {
				t.Errorf("the last event says %q", is)
			}
			events.sent.Store(0)
			in := h.Details(t.Context(), job)
			until(t, h, "the Job's events are read", func() bool {
				in = h.Details(t.Context(), job)
				return !in.Reading
			})
			if got, sent := len(in.HubEvents), events.sent.Load(); got != jobview.MaxEvents || sent > maxEventsRead+maxEventsRead/2 {
				t.Errorf("%d events are shown, after %d MiB were read", got, sent>>20)
			}
			if in.Behind || len(in.Missing.Events) != 1 || !strings.Contains(in.Missing.Events[0], "more events than are read") {
				t.Errorf("it lacks %q", in.Missing.Events)
			}
			runtime.KeepAlive(h)
		})
	}
}
