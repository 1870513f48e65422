package clusters

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// sendJobs answers a watch with Jobs, and keeps it open.
func sendJobs(jobs *atomic.Int64) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		to := json.NewEncoder(w)
		send := func(event watch.EventType, object any) error {
			return to.Encode(map[string]any{"type": event, "object": object})
		}
		for i := range int(jobs.Load()) {
			job := &batchv1.Job{TypeMeta: metav1.TypeMeta{Kind: "Job", APIVersion: "batch/v1"}, ObjectMeta: metav1.ObjectMeta{
				Namespace: "tenant", Name: fmt.Sprint("j", i), ResourceVersion: fmt.Sprint(i + 2),
				Labels:      map[string]string{v1alpha1.LabelOrigin: "origin"},
				Annotations: map[string]string{v1alpha1.AnnotationHubUID: "any"},
			}}
			if send(watch.Added, job) != nil {
				return
			}
		}
		end := &batchv1.Job{TypeMeta: metav1.TypeMeta{Kind: "Job", APIVersion: "batch/v1"}}
		end.ResourceVersion, end.Annotations = "1", map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		if send(watch.Bookmark, end) != nil || http.NewResponseController(w).Flush() != nil {
			return
		}
		<-req.Context().Done()
	}
}

// TestAWorkerWithTooManyMirrors: at the limit it gets no new Jobs, and is Ready. Far above, it
// isn't Ready, and no more than the limit and a quarter is held.
func TestAWorkerWithTooManyMirrors(t *testing.T) {
	const most = 100
	for name, row := range map[string]struct {
		jobs        int64
		placed      placements
		state       State
		reason      string
		schedulable string
	}{
		"fewer":    {most - 1, 0, Ready, v1alpha1.ReasonConnected, v1alpha1.ReasonSchedulable},
		"as many":  {most, 0, Ready, v1alpha1.ReasonConnected, v1alpha1.ReasonTooManyMirrors},
		"far more": {5 * most, 0, Disconnected, v1alpha1.ReasonTooManyMirrors, v1alpha1.ReasonNotReady},
		// its admin has lowered the limit
		"far more, all of them placed there": {5 * most, 5 * most, Ready, v1alpha1.ReasonConnected, v1alpha1.ReasonTooManyMirrors},
	} {
		t.Run(name, func(t *testing.T) {
			w := newStandby(t, func(o *Options) { o.Placements = row.placed })
			w.registry.AddListener(w)
			w.registry.lead(nil)
			c := w.server.Add("c", "uid", "t")
			var jobs atomic.Int64
			jobs.Store(row.jobs)
			c.Answer("watch jobs", sendJobs(&jobs))
			settings := Settings{Spec: v1alpha1.WorkerClusterSpec{MaxMirrors: ptr.To[int32](most)}}
			worker := w.configure("w1", c.Kubeconfig("t"), settings, known{})
			w.untilState(worker, row.state, row.reason)
			w.until("schedulable: "+row.schedulable, func() bool {
				reason, _ := worker.View().Schedulable()
				return reason == row.schedulable
			})
			if n := len(worker.Mirrors()); n > max(most, int(row.placed))*5/4+1 {
				t.Errorf("%d mirrors are held", n)
			}
			jobs.Store(1)
			w.server.Cut()
			w.untilState(worker, Ready, v1alpha1.ReasonConnected)
			w.until("it takes Jobs again", func() bool { _, ok := worker.View().Schedulable(); return ok })
		})
	}
}

// TestAWorkerWithTooManyPods is Ready, but its capacity isn't known.
func TestAWorkerWithTooManyPods(t *testing.T) {
	w := newWorld(t)
	c := w.server.Add("c", "uid", "t")
	c.Answer("watch pods", http.NotFound)
	var pages atomic.Int64
	c.Answer("get pods", func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Query().Get("fieldSelector") == "" {
			http.NotFound(w, req)
			return
		}
		from, limit := 0, 0
		_, _ = fmt.Sscan(req.URL.Query().Get("continue"), &from) // the first page has none
		if pages.Add(1) > 1 && from == 0 {                       // they are listed again later on
			pages.Add(-1)
			<-req.Context().Done()
			return
		}
		_, _ = fmt.Sscan(req.URL.Query().Get("limit"), &limit)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1","continue":"%d"},"items":[`, from+limit)
		for i := range limit - 1 {
			fmt.Fprintf(w, `{"metadata":{"namespace":"n","name":"p%d"}},`, from+i)
		}
		fmt.Fprintf(w, `{"metadata":{"namespace":"n","name":"last%d"}}]}`, from)
	})
	worker := w.register("w1", c.Kubeconfig("t"))
	w.until("it's said", func() bool {
		return strings.Contains(worker.View().Capacity.Missing, "more than 50000 unfinished Pods")
	})
	w.untilState(worker, Ready, v1alpha1.ReasonConnected)
	if n := pages.Load(); n != 50_000/500+1 {
		t.Errorf("%d pages were read", n)
	}
}
