package subresources

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// divided is a world whose Job runs in two workers: indexes 0 to 4 in "w", 5 to 9 in "e".
type divided struct {
	*world
	east *worker
}

func newDivided(t *testing.T, edits ...func(*Options)) *divided {
	t.Helper()
	w := &divided{newWorld(t, edits...), newWorker(t)}
	w.hub.put(hubJob(func(j *batchv1.Job) {
		hubstate.Set(j, hubstate.Changes{hubstate.Shards: "e=5-9;w=0-4", hubstate.ShardsState: "{}"})
		j.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	}))
	w.setEast(metav1.ConditionTrue)
	secret := w.east.secret("1")
	secret.Name = "e"
	w.hub.put(secret)
	w.worker.holds(*indexed("job-0-a", "0"), *indexed("job-1-a", "1"))
	w.east.holds(*indexed("job-5-a", "5"))
	return w
}

func (w *divided) setEast(ready metav1.ConditionStatus) {
	cluster := workerCluster(ready, "no answer")
	cluster.Name, cluster.Spec.KubeconfigSecret = "e", "e"
	w.hub.put(cluster)
}

func indexed(name, index string, edits ...func(*corev1.Pod)) *corev1.Pod {
	return pod(name, append(edits, func(p *corev1.Pod) {
		p.Labels = map[string]string{batchv1.JobCompletionIndexAnnotation: index}
	})...)
}

// holds has a worker list these Pods, by index if asked so, and each of their logs say where it is.
func (w *worker) holds(pods ...corev1.Pod) {
	w.on(podsPath, func(out http.ResponseWriter, r *http.Request) {
		list := corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}
		for _, p := range pods {
			if _, index, narrowed := strings.Cut(r.URL.Query().Get("labelSelector"), batchv1.JobCompletionIndexAnnotation+"="); !narrowed ||
				p.Labels[batchv1.JobCompletionIndexAnnotation] == index {
				list.Items = append(list.Items, p)
			}
		}
		writeJSON(out, http.StatusOK, list)
	})
	for _, p := range pods {
		w.object(podsPath+"/"+p.Name, p)
		w.on(podsPath+"/"+p.Name+"/log", func(out http.ResponseWriter, _ *http.Request) { fmt.Fprint(out, "log of "+p.Name) })
	}
}

func (w *worker) hangs(path string) {
	w.on(path, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
}

// pods lists "worker/Pod", and the warnings.
func (w *divided) pods(what string) (names, warnings []string) {
	w.t.Helper()
	got, err := w.get(what)
	var list struct {
		corev1.PodList
		Warnings []string `json:"warnings"`
	}
	if err != nil || got.code != http.StatusOK || json.Unmarshal([]byte(got.content), &list) != nil {
		w.t.Fatalf("%s: %d, %q, %v", what, got.code, got.content, err)
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Annotations[v1alpha1.AnnotationCluster]+"/"+list.Items[i].Name)
	}
	return names, list.Warnings
}

func TestPodsOfAllWorkers(t *testing.T) {
	w := newDivided(t)
	if names, warnings := w.pods("pods"); !slices.Equal(names, []string{"e/job-5-a", "w/job-0-a", "w/job-1-a"}) || warnings != nil {
		t.Errorf("%v, %v", names, warnings)
	}
	if names, _ := w.pods("pods?worker=e"); !slices.Equal(names, []string{"e/job-5-a"}) {
		t.Errorf("of one worker: %v", names)
	}
	w.refused("pods?worker=x", http.StatusNotFound, `Job "job" isn't placed on worker "x", but on e, w`)
	w.refused("mirror", http.StatusBadRequest, `Job "job" has a mirror in each of e, w; name one of them`)
	if got, err := w.get("mirror?worker=e"); err != nil || got.code != http.StatusOK || got.header.Get(WorkerHeader) != "e" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, _ := w.get("pods"); got.header.Get(WorkerHeader) != "e, w" || strings.Contains(got.content, `"resourceVersion":"5"`) {
		t.Errorf("the list of two workers: %v %.200s", got.header, got.content)
	}
}

// A Pod is shown as that of the worker that it comes from, whatever the worker says.
func TestAWorkerCantPassForAnother(t *testing.T) {
	w := newDivided(t)
	w.east.holds(*indexed("job-0-a", "0", born(100), func(p *corev1.Pod) {
		p.Annotations = map[string]string{v1alpha1.AnnotationCluster: "w"}
	}))
	if names, _ := w.pods("pods"); !slices.Equal(names, []string{"e/job-0-a", "w/job-0-a", "w/job-1-a"}) {
		t.Errorf("%v", names)
	}
	w.refused("log?pod=job-0-a", http.StatusBadRequest, `each of the workers "e", "w" has a Pod "job-0-a" of Job "job"; name one of them`)
	for what, worker := range map[string]string{"log?index=0": "w", "log?pod=job-0-a&worker=w": "w", "log?pod=job-0-a&worker=e": "e"} {
		if got, err := w.get(what); err != nil || got.header.Get(WorkerHeader) != worker {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	w.hub.put(workerCluster(metav1.ConditionFalse, "no answer"))
	w.refused("log?pod=job-0-a", http.StatusServiceUnavailable, `worker "e" has a Pod "job-0-a" of Job "job", and whether it is the only one isn't known`)
	w.refused("log?index=0", http.StatusServiceUnavailable, `worker "w" is out of touch`)

	w.east.object("/api/v1/namespaces/team/events", corev1.EventList{Items: []corev1.Event{{
		ObjectMeta:     metav1.ObjectMeta{Name: "x", Annotations: map[string]string{v1alpha1.AnnotationCluster: "w"}},
		InvolvedObject: corev1.ObjectReference{Kind: "Job", UID: mirrorUID},
	}}})
	got, err := w.get("events")
	if err != nil || strings.Contains(got.content, `"jobferry.dev/cluster":"w"`) || !strings.Contains(got.content, `"jobferry.dev/cluster":"e"`) ||
		!strings.Contains(got.content, `"warnings":["worker \"w\" is out of touch`) {
		t.Errorf("%+v, %v", got, err)
	}
}

// An index is found in the worker that has it, and else in another.
func TestLogOfAnIndex(t *testing.T) {
	w := newDivided(t)
	log := func(what, worker, content string) {
		t.Helper()
		if got, err := w.get(what); err != nil || got.content != content || got.header.Get(WorkerHeader) != worker {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	before := len(w.worker.heard())
	log("log?index=5", "e", "log of job-5-a")
	if n := len(w.worker.heard()) - before; n > 0 {
		t.Errorf("the worker without the index was asked %d times", n)
	}
	log("log?index=1", "w", "log of job-1-a")
	w.worker.holds(*indexed("job-0-a", "0"), *indexed("job-7-a", "7"))
	log("log?index=7", "w", "log of job-7-a") // it has moved
	w.refused("log?index=8", http.StatusNotFound, `Job "job" has no Pod of index 8 in worker "e"; Job "job" has no Pod of index 8 in worker "w"`)
	w.refused("log?index=12", http.StatusNotFound, "no Pod of index 12")
	w.refused("log?index=8&worker=e", http.StatusNotFound, `no Pod of index 8 in worker "e"`)

	w.east.on("/apis/batch/v1/namespaces/team/jobs/job", nil)
	log("log?index=7", "w", "log of job-7-a") // its shard hasn't started
	w.refused("log?index=8", http.StatusConflict, `is placed on worker "e", and hasn't started there yet`)
}

// A worker that can't be asked is reported, and what the others have is shown.
func TestOneWorkerIsDown(t *testing.T) {
	w := newDivided(t, func(o *Options) { o.RequestTimeout = 2 * time.Second })
	rows := map[string]struct {
		edit func()
		text string
	}{
		"out of touch":    {func() { w.setEast(metav1.ConditionFalse) }, `worker "e" is out of touch`},
		"hangs":           {func() { w.east.hangs("/apis/batch/v1/namespaces/team/jobs/job") }, `worker "e" doesn't answer in time (reading the Job)`},
		"hangs with Pods": {func() { w.east.hangs(podsPath) }, `worker "e" doesn't answer in time (listing Pods)`},
		"no mirror yet":   {func() { w.east.on("/apis/batch/v1/namespaces/team/jobs/job", nil) }, "hasn't started there yet"},
		"somebody's": {func() {
			w.east.object("/apis/batch/v1/namespaces/team/jobs/job", mirrorJob(func(j *batchv1.Job) { j.Labels = nil }))
		}, "hasn't started there yet"},
		"sends nonsense":   {func() { w.east.object(podsPath, "x") }, `worker "e" can't be reached`},
		"its list is long": {w.east.neverEnds, `worker "e"`},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			w.setEast(metav1.ConditionTrue)
			w.east.object("/apis/batch/v1/namespaces/team/jobs/job", mirrorJob())
			w.east.holds()
			row.edit()
			names, warnings := w.pods("pods")
			if names = slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, "e/") }); !slices.Equal(names, []string{"w/job-0-a", "w/job-1-a"}) ||
				len(warnings) != 1 || !strings.Contains(warnings[0], row.text) {
				t.Errorf("%v, %v", names, warnings)
			}
			if got, err := w.get("log"); err != nil || got.header.Get(WorkerHeader) != "w" {
				t.Errorf("the newest log: %+v, %v", got, err)
			}
		})
	}
	w.setEast(metav1.ConditionFalse)
	if got, err := w.get("log"); err != nil || !strings.Contains(got.header.Get("Warning"), `299 - "worker \"e\" is out of touch`) {
		t.Errorf("the newest log: %+v, %v", got, err)
	}
	w.worker.holds()
	w.refused("log", http.StatusServiceUnavailable, `worker "e" is out of touch`)
	w.refused("log", http.StatusServiceUnavailable, `; Job "job" has no Pod in worker "w"`)
	w.hub.put(workerCluster(metav1.ConditionFalse, "neither"))
	w.refused("pods", http.StatusServiceUnavailable, `worker "e" is out of touch`)
	w.refused("pods", http.StatusServiceUnavailable, `; worker "w" is out of touch`)
}

// neverEnds has a worker's list of Pods go on and on.
func (w *worker) neverEnds() {
	w.on(podsPath, func(out http.ResponseWriter, _ *http.Request) {
		writeJSON(out, http.StatusOK, corev1.PodList{ListMeta: metav1.ListMeta{Continue: "more"}, Items: []corev1.Pod{*pod("job-a")}})
	})
}

// Of the chunks of a request, a worker that never comes to an end takes only its part.
func TestALongListLeavesSomeForOthers(t *testing.T) {
	w := newDivided(t, func(o *Options) { o.RequestTimeout = 5 * time.Minute })
	w.east.neverEnds()
	before := len(w.east.heard())
	names, warnings := w.pods("pods")
	if n := len(w.east.heard()) - before; n > maxChunks/2+1 || len(names) != maxChunks/2+2 || len(warnings) != 1 ||
		!strings.Contains(warnings[0], "has more Pods of the Job than are read") {
		t.Errorf("%d requests, %d Pods, %v", n, len(names), warnings)
	}
}

// A worker that fills each chunk, or has others' Pods, doesn't keep the manager busy for long.
func TestALongListOfOneWorkerEnds(t *testing.T) {
	padded := pod("job-a")
	padded.Annotations = map[string]string{"padding": strings.Repeat("x", 3<<20)}
	foreign := corev1.PodList{ListMeta: metav1.ListMeta{Continue: "more"}}
	for i := range podsPerChunk {
		foreign.Items = append(foreign.Items, *pod(fmt.Sprint("other-", i), func(p *corev1.Pod) { p.OwnerReferences[0].UID = "another" }))
	}
	for name, row := range map[string]struct {
		list     corev1.PodList
		requests int
	}{
		"of filled chunks": {corev1.PodList{ListMeta: metav1.ListMeta{Continue: "more"}, Items: []corev1.Pod{*padded}}, maxSearchedBytes/(3<<20) + 1},
		"of others' Pods":  {foreign, maxStrangers / podsPerChunk},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(o *Options) { o.RequestTimeout = 5 * time.Minute })
			w.worker.on(podsPath, func(out http.ResponseWriter, _ *http.Request) { writeJSON(out, http.StatusOK, row.list) })
			before := len(w.worker.heard())
			w.refused("log", http.StatusServiceUnavailable, "has more Pods of the Job than are read for a request")
			if n := len(w.worker.heard()) - before; n > row.requests+2 {
				t.Errorf("%d requests, at most %d are expected", n, row.requests+2)
			}
		})
	}
}

// A worker that has many events, all of them of tomorrow, leaves room for those of the others.
func TestManyEventsLeaveSomeForOthers(t *testing.T) {
	w := newDivided(t)
	const path = "/api/v1/namespaces/team/events"
	happened := func(name string, seconds int64) corev1.Event {
		return corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Name: name},
			InvolvedObject: corev1.ObjectReference{Kind: "Job", UID: mirrorUID}, LastTimestamp: metav1.Unix(seconds, 0),
		}
	}
	w.worker.object(path, corev1.EventList{Items: []corev1.Event{happened("old", 1)}})
	sent := 0
	w.east.on(path, func(out http.ResponseWriter, r *http.Request) {
		list := corev1.EventList{}
		if strings.Contains(r.URL.Query().Get("fieldSelector"), "involvedObject.uid") && sent < 2*maxEvents {
			list.Continue = "more"
			for range eventsPerChunk {
				list.Items = append(list.Items, happened(fmt.Sprint("new-", sent), 1<<37))
				sent++
			}
		}
		writeJSON(out, http.StatusOK, list)
	})
	got, err := w.get("events")
	var list corev1.EventList
	if err != nil || json.Unmarshal([]byte(got.content), &list) != nil {
		t.Fatalf("%d %.200s, %v", got.code, got.content, err)
	}
	if len(list.Items) != maxEvents/2+1 || list.Items[0].Name != "old" {
		t.Errorf("%d events, the first is %q", len(list.Items), list.Items[0].Name)
	}
}
