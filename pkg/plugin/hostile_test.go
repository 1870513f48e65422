package plugin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/jobview"
)

// manyObjects answers lists of objects, page by page.
type manyObjects struct {
	kind string
	of   func(i int) any
	n    int
	// sizes are how many bytes the last answer from an object on has, if it has more than one: an
	// earlier one was refused.
	mu    sync.Mutex
	sizes map[int]int
}

// largest is how many bytes the largest answer has that was taken.
func (m *manyObjects) largest() (size int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, is := range m.sizes {
		size = max(size, is)
	}
	return size
}

func (m *manyObjects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	limit, _ := strconv.Atoi(query.Get("limit"))
	from, _ := strconv.Atoi(query.Get("continue"))
	if limit == 0 {
		limit = m.n
	}
	about := metav1.ListMeta{ResourceVersion: "7"}
	end := min(from+limit, m.n)
	if end < m.n {
		about.Continue = strconv.Itoa(end)
	}
	w.Header().Set("Content-Type", "application/json")
	text, _ := json.Marshal(about)
	var answer bytes.Buffer
	fmt.Fprintf(&answer, `{%s, "metadata": %s, "items": [`, m.kind, text)
	for i := from; i < end; i++ {
		if i > from {
			answer.WriteByte(',')
		}
		text, _ := json.Marshal(m.of(i))
		answer.Write(text)
	}
	answer.WriteString("]}")
	m.mu.Lock()
	if m.sizes == nil {
		m.sizes = map[int]int{}
	}
	if m.sizes[from] = answer.Len(); end-from == 1 {
		delete(m.sizes, from)
	}
	m.mu.Unlock()
	_, _ = answer.WriteTo(w)
}

// A tenant writes very many events about a Job, some of them large: few are held, and the newest
// are shown.
func TestVeryManyEventsOfTheHub(t *testing.T) {
	for _, args := range [][]string{{"events", "shards"}, {"describe", "shards"}, {"jobs"}, {"jobs", "-w"}} {
		events := &manyObjects{kind: `"apiVersion": "v1", "kind": "EventList"`, n: 4000, of: func(i int) any {
			e := event(v1alpha1.EventStatusRejected, fmt.Sprint("event ", i, strings.Repeat("x", 1000)))
			e.Namespace, e.Name, e.ReportingController = "team-a", fmt.Sprint("e", i), v1alpha1.EventController
			e.LastTimestamp = metav1.NewTime(now.Add(time.Duration(i) * time.Second))
			if i == 700 {
				e.Annotations = map[string]string{"large": strings.Repeat("x", 1<<20)}
			}
			return &e
		}}
		h := newHub(t)
		h.answers["/api/v1/namespaces/team-a/events"] = events
		list := &batchv1.JobList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []batchv1.Job{*hubJob()}}
		h.answers["/apis/batch/v1/namespaces/team-a/jobs"] = watched(t, list)
		got := h.run(args...)
		if events.largest() > 2<<20 || events.largest() == 0 {
			t.Errorf("%s: an answer of %d KiB is read", args, events.largest()>>10)
		}
		if !strings.Contains(got.out, "event 3999") || strings.Count(got.out, "event ") > jobview.MaxEvents {
			t.Errorf("%s: %d events are shown: %.300s%.300s", args, strings.Count(got.out, "event "), got.out, got.err)
		}
		if isOfJob := args[0] == "events" || args[0] == "describe"; isOfJob && !strings.Contains(got.err, "has 3000 more events") {
			t.Errorf("%s: %.300s", args, got.err)
		}
	}
}

// A tenant's Jobs are very large: of each, a shell that completes names holds that.
func TestNamesOfLargeJobs(t *testing.T) {
	jobs := &manyObjects{kind: `"apiVersion": "batch/v1", "kind": "JobList"`, n: 20, of: func(i int) any {
		job := hubJob()
		job.Name, job.Annotations = fmt.Sprint("job-", i), map[string]string{"large": strings.Repeat("x", 200<<10)}
		return job
	}}
	h := newHub(t)
	h.answers["/apis/batch/v1/namespaces/team-a/jobs"] = jobs
	if got := h.run("__complete", "describe", ""); strings.Count(got.out, "job-") != jobs.n || jobs.largest() > 2<<20 {
		t.Errorf("an answer of %d KiB is read: %.300s%.300s", jobs.largest()>>10, got.out, got.err)
	}
}

// A tenant writes events about ever other Jobs that never were, while Jobs are watched.
func TestEventsOfJobsThatNeverWere(t *testing.T) {
	job := hubJob()
	w := &jobWatch{known: map[jobview.Subject]knownJob{jobview.SubjectOf(job): {row: job}}}
	w.reasons = jobview.NewReasonsOfKnown(w.knows)
	for i := range 20 * jobview.MaxEarly {
		e := event(v1alpha1.EventPending, strings.Repeat("x", 10_000))
		e.Namespace, e.InvolvedObject.UID, e.ReportingController = "team-a", types.UID(fmt.Sprint(i)), v1alpha1.EventController
		w.reasons.Note(&e) // UID 1 is the Job's
	}
	kept := 0
	for _, reason := range w.reasons.Reasons {
		kept += len(reason.Message)
	}
	if len(w.reasons.Reasons) > jobview.MaxEarly+1 || kept > 2<<20 || w.around(job).Reason.Reason != v1alpha1.EventPending {
		t.Errorf("%d events with %d bytes are kept: %+v", len(w.reasons.Reasons), kept, w.around(job).Reason)
	}
}

// A worker has very many Pods of a Job. For each log, they were all looked at.
func BenchmarkSeveralWorkers(b *testing.B) {
	pods := make([]corev1.Pod, 100_000)
	for i := range pods {
		pods[i] = pod(i)
	}
	for b.Loop() {
		severalWorkers(pods)
	}
}

// Accounts of forged Jobs name very many workers.
func BenchmarkUsageOfVeryManyWorkers(b *testing.B) {
	for b.Loop() {
		all := usageSums{}
		for i := range 250_000 {
			all.of("n", fmt.Sprint(i), corev1.ResourceCPU).Total++
		}
		_ = all.sorted()
	}
}
