package hub

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
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

// manyObjects answers lists of very many objects, page by page, and counts the bytes.
type manyObjects struct {
	kind string
	n    int
	of   func(i int) any
	sent atomic.Int64
	// last is how many bytes the last answer from an object on has: an earlier one was refused.
	last sync.Map
}

// largest is how many bytes the largest answer has that was taken.
func (m *manyObjects) largest() (size int64) {
	m.last.Range(func(_, is any) bool {
		size = max(size, is.(int64))
		return true
	})
	return size
}

func (m *manyObjects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if query.Has("watch") {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return
	}
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
	fmt.Fprintf(&page, `{%s, "metadata": %s, "items": [`, m.kind, text)
	for i := from; i < end; i++ {
		text, _ := json.Marshal(m.of(i))
		page.WriteString(strings.Repeat(",", min(i-from, 1)))
		page.Write(text)
	}
	page.WriteString("]}")
	w.Header().Set("Content-Type", "application/json")
	sent, _ := page.WriteTo(w)
	m.sent.Add(sent)
	m.last.Store(from, sent)
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
			events := &manyObjects{kind: `"apiVersion": "v1", "kind": "EventList"`, n: n, of: func(i int) any {
				return &corev1.Event{
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

// A tenant has large Jobs, on a hub that can't send lists as events: few of them are read at a
// time.
func TestManyLargeJobs(t *testing.T) {
	large := theJob()
	large.Annotations["large"] = strings.Repeat("x", 200<<10)
	jobs := &manyObjects{kind: `"apiVersion": "batch/v1", "kind": "JobList"`, n: 100, of: func(i int) any {
		job := large.DeepCopy()
		job.Name, job.UID = fmt.Sprint("job-", i), types.UID(fmt.Sprint(i))
		return job
	}}
	a := &api{answers: answers()}
	a.answers[jobsPath] = jobs
	before := costtest.Heap()
	h, _, _ := run(t, a)
	until(t, h, "the Jobs are read", func() bool { return len(h.Jobs()) == jobs.n })
	if held := costtest.Heap() - before; held > 4<<20 || jobs.largest() > 2<<20 {
		t.Errorf("%d KiB are held, and an answer of %d KiB is read", held>>10, jobs.largest()>>10)
	}
	runtime.KeepAlive(h)
}
