package subresources

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/util/costtest"
)

const eventsPath = "/api/v1/namespaces/team/events"

// sends has a worker list a number of events, each of the same text but for its name, and counts
// the bytes that it has sent.
func (w *worker) sends(events int, text string) (sent *atomic.Int64) {
	sent = new(atomic.Int64) // an answer that nobody reads to its end may still be sent
	w.on(eventsPath, func(out http.ResponseWriter, r *http.Request) {
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		first, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		var items []string
		for i := first; i < min(first+limit, events); i++ {
			items = append(items, fmt.Sprintf(text, fmt.Sprint("e", i)))
		}
		more := ""
		if first+limit < events {
			more = strconv.Itoa(first + limit)
		}
		out.Header().Set("Content-Type", "application/json")
		n, _ := fmt.Fprintf(out, `{"kind":"EventList","apiVersion":"v1","metadata":{"continue":%q},"items":[%s]}`, more, strings.Join(items, ","))
		sent.Add(int64(n))
	})
	return sent
}

// TestLargeEventsTakeLittleMemory: a worker's events have very many labels, owners or long texts.
func TestLargeEventsTakeLittleMemory(t *testing.T) {
	const most = 16 << 20
	var labels []string
	for label := range manyLabels(900) {
		labels = append(labels, fmt.Sprintf("%q:\"\"", label))
	}
	for name, event := range map[string]string{
		"labels": `{"metadata":{"name":"%s","labels":{` + strings.Join(labels, ",") + `}}}`,
		"owners": `{"metadata":{"name":"%s","ownerReferences":[` + strings.Repeat("{},", 300) + `{}]}}`,
		"texts":  `{"metadata":{"name":"%s"},"message":"` + strings.Repeat("x", 8000) + `"}`,
		"small":  `{"metadata":{"name":"%s"},"message":"x"}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.worker.sends(4200, event)
			before, took, times := costtest.Heap(), int64(0), 0
			out := &sink{header: http.Header{}}
			out.meanwhile = func() {
				if times++; times == 1 {
					took = costtest.Heap() - before
				}
			}
			w.asksFor("events", out)
			t.Logf("%d KiB for %d events", took>>10, times/2)
			if took > most || times < 2*500 {
				t.Errorf("%d events take %d KiB", times/2, took>>10)
			}
		})
	}
}

// TestEventsOfOthersAreReadForABound: to read them takes time, though none of them is the Job's.
func TestEventsOfOthersAreReadForABound(t *testing.T) {
	w := newWorld(t)
	sent := w.worker.sends(1_000_000, `{"metadata":{"name":"%s","annotations":{"x":"`+strings.Repeat("x", 10_000)+`"}},"involvedObject":{"uid":"other"}}`)
	if got, err := w.get("events"); err != nil || got.code != http.StatusOK || sent.Load() > maxEventsRead+maxAnswerBytes {
		t.Errorf("code %d, %v; %d MiB were read", got.code, err, sent.Load()>>20)
	}
}

// TestEventsOfVeryManyPods: only the metadata of Pods are read, up to a bound, in little memory.
// Events of the Pods that were read are shown, and that others may be missing is said.
func TestEventsOfVeryManyPods(t *testing.T) {
	for name, padding := range map[string]int{"large": 20_000, "small": 0} {
		t.Run(name, func(t *testing.T) { testEventsOfVeryManyPods(t, strings.Repeat("x", padding)) })
	}
}

func testEventsOfVeryManyPods(t *testing.T, padding string) {
	t.Helper()
	const most = 32 << 20
	w := newWorld(t)
	var sent, pods, took atomic.Int64
	before := costtest.Heap()
	w.worker.on(podsPath, func(out http.ResponseWriter, r *http.Request) {
		if accept := r.Header.Get("Accept"); accept != metadataOnly {
			t.Errorf("it's asked for %q", accept)
		}
		list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
		list.Continue = "more"
		for range podsPerChunk {
			meta := pod(fmt.Sprint("job-", pods.Add(1))).ObjectMeta
			meta.Annotations = map[string]string{"padding": padding}
			list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: meta})
		}
		text, _ := json.Marshal(list)
		out.Header().Set("Content-Type", "application/json")
		n, _ := out.Write(text)
		sent.Add(int64(n))
	})
	w.worker.on(eventsPath, func(out http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Query().Get("fieldSelector"), "Pod") {
			writeJSON(out, http.StatusOK, corev1.EventList{})
			return
		}
		took.Store(costtest.Heap() - before)
		writeJSON(out, http.StatusOK, corev1.EventList{Items: []corev1.Event{
			{ObjectMeta: metav1.ObjectMeta{Name: "e"}, InvolvedObject: corev1.ObjectReference{UID: "job-7"}},
			{ObjectMeta: metav1.ObjectMeta{Name: "another"}, InvolvedObject: corev1.ObjectReference{UID: "another"}},
		}})
	})
	got, err := w.get("events")
	if err != nil || got.code != http.StatusOK || !strings.Contains(got.content, `"name":"e"`) || strings.Contains(got.content, "another") ||
		!strings.Contains(got.content, "events of some aren't shown") {
		t.Errorf("%+v, %v", got, err)
	}
	t.Logf("%d Pods, %d MiB, %d KiB are held", pods.Load(), sent.Load()>>20, took.Load()>>10)
	if took.Load() > most || sent.Load() > maxSearchedBytes+maxAnswerBytes {
		t.Errorf("%d MiB are read, %d MiB are held", sent.Load()>>20, took.Load()>>20)
	}
}

// TestFewRequestsHaveEvents: a namespace has two of them at a time, until they're written.
func TestFewRequestsHaveEvents(t *testing.T) {
	w := newWorld(t)
	w.worker.object(eventsPath, corev1.EventList{Items: []corev1.Event{{ObjectMeta: metav1.ObjectMeta{Name: "e"}}}})
	levels := 0
	var again func()
	again = func() {
		out := &sink{header: http.Header{}}
		out.meanwhile = func() {
			out.meanwhile = nil
			if levels++; levels < 2 {
				again()
				return
			}
			w.refused("events", http.StatusTooManyRequests, `namespace "team" has 2 lists of events open here, and 6 of 8 places are free`)
		}
		w.asksFor("events", out)
	}
	again()
	if levels != 2 {
		t.Errorf("%d lists at a time", levels)
	}
	if got, err := w.get("events"); err != nil || got.code != http.StatusOK {
		t.Errorf("%+v, %v", got, err)
	}
}
