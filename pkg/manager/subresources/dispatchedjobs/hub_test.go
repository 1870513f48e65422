package dispatchedjobs

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/jobview/jobviewtest"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// encode is an object as the hub sends it.
func encode(t testing.TB, object apiruntime.Object) []byte {
	t.Helper()
	info, _ := apiruntime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), apiruntime.ContentTypeProtobuf)
	content, err := apiruntime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, schema.GroupVersions(scheme.Scheme.PrioritizedVersionsAllGroups())), object)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// serveHub is a Server whose hub answers by a function. Its reasons are known.
func serveHub(t *testing.T, answer http.HandlerFunc) *Server {
	t.Helper()
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", apiruntime.ContentTypeProtobuf)
		answer(w, r)
	}))
	t.Cleanup(hub.Close)
	client, err := NewClient(&rest.Config{Host: hub.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	s := New(client, jobview.WorkersAmong(jobviewtest.Workers()), time.Minute, logr.Discard())
	s.reasons.replace(newHeld())
	return s
}

// full has something in all that's read of a Job, and more.
func full(name string) *batchv1.Job {
	return job(name, "7", func(j *batchv1.Job) {
		j.Labels = map[string]string{"app": "train", "empty": ""}
		j.Annotations = map[string]string{
			v1alpha1.AnnotationClusterSelector: "gpu=true", "note": strings.Repeat("n", 100_000),
		}
		j.Generation, j.CreationTimestamp, j.DeletionTimestamp = 300, metav1.Unix(1e9, 0), ptr.To(metav1.Unix(2e9, 0))
		j.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: strings.Repeat("m", 100_000)}}
		j.Finalizers = []string{"a/b"}
		j.Spec.Parallelism, j.Spec.Completions, j.Spec.Suspend = ptr.To[int32](3), ptr.To[int32](1000), ptr.To(true)
		j.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
		j.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Args: []string{strings.Repeat("x", 1_200_000)}}}
		j.Status = batchv1.JobStatus{
			Active: 2, Ready: ptr.To[int32](1), Succeeded: 200, Failed: 4, StartTime: ptr.To(metav1.Unix(1e9, 0)),
			Conditions: []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue, Reason: "why", LastTransitionTime: metav1.Unix(1e9, 0)}},
		}
	})
}

// TestWhatIsKept: the client decodes what users see, and little else.
func TestWhatIsKept(t *testing.T) {
	j := full("a")
	s := serveHub(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(encode(t, j)) })
	got, err := s.Read(t.Context(), types.NamespacedName{Namespace: "team", Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(jobview.Of(j, jobview.Around{}), jobview.Of(got, jobview.Around{})); diff != "" {
		t.Error(diff)
	}
	if size := got.Size(); size > 1000 || !mirror.Managed(got) || *got.Spec.CompletionMode != *j.Spec.CompletionMode {
		t.Errorf("%d bytes are kept: %+v", size, got)
	}
}

// TestStates: what's kept of a Job has its state, which is the one that all show.
func TestStates(t *testing.T) {
	for _, row := range jobviewtest.Jobs() {
		s := serveHub(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(encode(t, row.Job)) })
		got, err := s.Read(t.Context(), types.NamespacedName{Namespace: "team", Name: "a"})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.view(got).Status.State; got != row.Want {
			t.Errorf("%s: %s, want %s", row.Name, got, row.Want)
		}
	}
}

// TestWhatIsKeptOfAWatch: so does a watch. A bookmark and an error come through.
func TestWhatIsKeptOfAWatch(t *testing.T) {
	bookmark := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
	s := serveHub(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", apiruntime.ContentTypeProtobuf+";stream=watch")
		for kind, object := range map[watch.EventType]apiruntime.Object{watch.Added: full("a"), watch.Bookmark: bookmark, watch.Error: &metav1.Status{Code: 410, Message: "old"}} {
			frame, err := (&metav1.WatchEvent{Type: string(kind), Object: apiruntime.RawExtension{Raw: encode(t, object)}}).Marshal()
			if err != nil {
				t.Error(err)
			}
			_, _ = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...))
		}
	})
	events, err := s.hub.Jobs("team").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[watch.EventType]bool{}
	for e := range events.ResultChan() {
		seen[e.Type] = true
		switch object := e.Object.(type) {
		case *batchv1.Job:
			ok := object.Annotations[metav1.InitialEventsAnnotationKey] == "true" && object.ResourceVersion == "9"
			if e.Type == watch.Added {
				ok = cmp.Equal(jobview.Of(object, jobview.Around{}), jobview.Of(full("a"), jobview.Around{})) && object.Size() < 1000
			}
			if !ok {
				t.Errorf("%s: %+v", e.Type, object)
			}
		case *metav1.Status:
			if object.Code != 410 || object.Message != "old" {
				t.Errorf("%+v", object)
			}
		}
	}
	if len(seen) != 3 {
		t.Errorf("events %v", seen)
	}
}

// listHub answers lists of Jobs in pages, from where the user goes on.
func listHub(t *testing.T, w http.ResponseWriter, r *http.Request, of func(i int) *batchv1.Job, n int) {
	from, _ := strconv.Atoi(r.FormValue("continue"))
	limit, _ := strconv.Atoi(r.FormValue("limit"))
	page := &batchv1.JobList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}
	for i := from; i < min(from+limit, n); i++ {
		page.Items = append(page.Items, *of(i))
	}
	if from+limit < n {
		page.Continue = fmt.Sprint(from + limit)
	}
	_, _ = w.Write(encode(t, page))
}

// TestJobsOfManyLabels: of Jobs with hundreds of kilobytes of labels each, as much is held at a
// time as of others, and all are listed.
func TestJobsOfManyLabels(t *testing.T) {
	labels := map[string]string{}
	for i := range 20_000 {
		labels[fmt.Sprint("label-", i)] = ""
	}
	var mu sync.Mutex
	limits := map[string]bool{}
	s := serveHub(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		limits[r.FormValue("limit")] = true
		mu.Unlock()
		listHub(t, w, r, func(i int) *batchv1.Job {
			return job(fmt.Sprint(i), "1", func(j *batchv1.Job) { j.Labels = labels })
		}, 40)
	})
	l := readList(t, s, "")
	if len(l.Items) != 40 || len(l.Items[0].Labels) < 1000 || len(l.Items[0].Labels) > maxLabelBytes/10 {
		t.Errorf("%d Jobs with %d labels", len(l.Items), len(l.Items[0].Labels))
	}
	if len(limits) != 3 || !limits["500"] || !limits["62"] || !limits["7"] {
		t.Errorf("limits %v", limits)
	}
}

// TestEventsOfAMegabyte: tenants write events, too. What is held of one is bounded.
func TestEventsOfAMegabyte(t *testing.T) {
	large := func(name string, edit func(e *corev1.Event, s string)) corev1.Event {
		return *event(name, "Pending", "waits", 1, func(e *corev1.Event) { edit(e, strings.Repeat("x", 1_200_000)) })
	}
	events := []corev1.Event{
		large("labels", func(e *corev1.Event, s string) { e.Labels = map[string]string{s: s} }),
		large("message", func(e *corev1.Event, s string) { e.Message = s }),
		large("uid", func(e *corev1.Event, s string) { e.InvolvedObject.UID = types.UID(s) }),
		large("name", func(e *corev1.Event, s string) { e.InvolvedObject.Name = s }),
		large("other", func(e *corev1.Event, s string) { e.Reason = s }),
	}
	s := serveHub(t, func(w http.ResponseWriter, r *http.Request) {
		from, _ := strconv.Atoi(r.FormValue("continue"))
		limit, _ := strconv.Atoi(r.FormValue("limit"))
		page := &corev1.EventList{Items: events[from:min(from+limit, len(events))]}
		if from+limit < len(events) {
			page.Continue = fmt.Sprint(from + limit)
		}
		_, _ = w.Write(encode(t, page))
	})
	if _, err := s.reasons.list(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(s.reasons.held.reasons); n != 2 || s.why("labels") != "waits" || len(s.why("message")) > 1024 {
		t.Errorf("%d are held", n)
	}
}

// TestManyListsOfLargeJobs has a tenant list 250 Jobs of 1.2 MB 20 times at once. That takes little
// memory, and another tenant's list is answered meanwhile.
func TestManyListsOfLargeJobs(t *testing.T) {
	const jobs, requests, mostHeap = 250, 20, 32 << 20
	var (
		reading = make(chan struct{}, requests)
		goOn    = make(chan struct{})
		item    = full("large")
		answer  = func(w http.ResponseWriter) { // without its memory
			raw, err := item.Marshal()
			if err != nil {
				t.Error(err)
			}
			one := append(binary.AppendUvarint([]byte{2<<3 | 2}, uint64(len(raw))), raw...)
			kind, err := (&apiruntime.TypeMeta{APIVersion: "batch/v1", Kind: "JobList"}).Marshal()
			if err != nil {
				t.Error(err)
			}
			head := appendField([]byte(magic), 1<<3|2, kind)
			_, _ = w.Write(binary.AppendUvarint(append(head, 2<<3|2), uint64(jobs*len(one))))
			for i := range jobs {
				if i == jobs/2 {
					reading <- struct{}{}
					<-goOn
				}
				_, _ = w.Write(one)
			}
		}
	)
	s := serveHub(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/evil/") {
			answer(w)
			return
		}
		listHub(t, w, r, func(i int) *batchv1.Job { return job(fmt.Sprint(i), "1") }, 3)
	})
	before := heap()
	var lists sync.WaitGroup
	for range requests {
		lists.Go(func() {
			out := httptest.NewRecorder()
			if err := s.List(out, get("", asTable), "evil", options(t, "")); err != nil || strings.Count(out.Body.String(), `"cells"`) != jobs {
				t.Errorf("%d rows: %v", strings.Count(out.Body.String(), `"cells"`), err)
			}
		})
	}
	for range maxReadsOfOne {
		<-reading
	}
	if l := readList(t, s, ""); l.names() != "0 1 2" { // of namespace team
		t.Errorf("%+v", l)
	}
	peak := heap()
	close(goOn)
	ended := make(chan struct{})
	go func() { lists.Wait(); close(ended) }()
	for measured := false; !measured; {
		select {
		case <-ended:
			measured = true
		default:
			peak = max(peak, heap())
		}
	}
	t.Logf("the heap grew by %d KiB", (peak-before)>>10)
	if peak-before > mostHeap {
		t.Errorf("the heap grew by %d MiB", (peak-before)>>20)
	}
	if n := s.turns.Holders(); n != 0 {
		t.Errorf("%d turns are left", n)
	}
}

// FuzzSlim: of whatever is an object, an object is left, and no more than there was.
func FuzzSlim(f *testing.F) {
	f.Add(encode(f, full("a")))
	f.Add(encode(f, &batchv1.JobList{Items: []batchv1.Job{*full("a"), *full("b")}}))
	f.Add(encode(f, &corev1.EventList{Items: []corev1.Event{*event("a", "Pending", "waits", 1)}}))
	f.Add(encode(f, &metav1.Status{Message: "no"}))
	f.Fuzz(func(t *testing.T, answer []byte) {
		_, err := apiruntime.Decode(scheme.Codecs.UniversalDeserializer(), answer)
		slim, slimErr := (&slimmer{from: bufio.NewReader(bytes.NewReader(answer))}).object(toTheEnd)
		if slimErr != nil {
			return
		}
		if _, slimErr := apiruntime.Decode(scheme.Codecs.UniversalDeserializer(), slim); err == nil && slimErr != nil || len(slim) > 2*len(answer) {
			t.Errorf("%d bytes of %d, %v", len(slim), len(answer), slimErr)
		}
	})
}

// heap is how much memory is in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func FuzzCost(f *testing.F) {
	f.Add(string(encode(f, full("a"))), "", "")
	f.Add(string(encode(f, &batchv1.JobList{Items: []batchv1.Job{*full("a"), *full("b")}})), "", "")
	f.Add("k8s\x00", "\x0a\x00", "")
	f.Add("a", ",a", "")
	f.Add("a=b", ",a=b", "")
	f.Add("text/plain", ",text/plain", "")
	f.Add("application/json", ";a=b", "")
	costtest.Check(f, 64<<10, 100, func(text string) {
		_, _ = (&slimmer{from: bufio.NewReader(strings.NewReader(text))}).object(toTheEnd)
		_, _ = ParseOptions(url.Values{"labelSelector": {text}})
		_, _ = ParseOptions(url.Values{"fieldSelector": {text}})
		_, _ = formOf(http.Header{"Accept": {text}}, nil)
	})
}
