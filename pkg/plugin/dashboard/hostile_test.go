package dashboard

import (
	"fmt"
	"net/url"
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
	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// costOf is how many bytes a page takes, as it's made, and as it's sent.
func costOf(t *testing.T, w *world, path string) (made uint64, sent int) {
	t.Helper()
	b := open(t, w)
	address, err := url.Parse(b.server.base + path)
	if err != nil {
		t.Fatal(err)
	}
	made = costtest.Of(func() {
		p := b.server.page(t.Context(), address)
		body, err := b.server.execute("page", p)
		if err != nil {
			t.Error(err)
		}
		sent = len(event(p, body))
	})
	return made, sent
}

// Jobs name very many workers and resources, each other ones: a page lists some of them.
func TestPagesOfVeryManyNames(t *testing.T) {
	w := newWorld()
	for i := range 200 {
		var shards, requests []string
		for s := range 500 {
			shards = append(shards, fmt.Sprintf("worker-%d-%s%d=%d", i, strings.Repeat("x", 40), s, s))
		}
		for r := range 8 {
			requests = append(requests, fmt.Sprintf(`"example.com/r%d-%d":"1"`, i, r))
		}
		w.jobs = append(w.jobs, job(fmt.Sprintf("job-%d", i), func(j *batchv1.Job) {
			j.Namespace = fmt.Sprint("team-", i)
			j.Spec.CompletionMode, j.Spec.Completions = ptr.To(batchv1.IndexedCompletion), ptr.To[int32](500)
			hubstate.Set(j, hubstate.Changes{
				hubstate.Cluster: "", hubstate.Shards: strings.Join(shards, ";"),
				hubstate.Usage: `[{"worker":"w","uid":"1","seconds":10,"at":1,"requests":{"cpu":"1",` + strings.Join(requests[:7], ",") + `}}]`,
			})
		}))
	}
	for _, path := range []string{"/", "/jobs", "/jobs?sort=worker", "/usage"} {
		if made, sent := costOf(t, w, path); made > 48<<20 || sent > 1<<20 {
			t.Errorf("%s: %d MiB are allocated, %d KiB sent", path, made>>20, sent>>10)
		}
	}
	if body := open(t, w).shows("/usage", 200, "cpu (CPU-hours)", "more resources aren't listed"); strings.Count(body, "<th scope=\"col\"") > 100 {
		t.Error("very many columns")
	}
}

// A Job has as many events as are looked at, each of which names as many workers as it can.
func TestThePageOfAJobOfManyEvents(t *testing.T) {
	w := newWorld()
	w.jobs = append(w.jobs, job("pi"))
	of := corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "team-a", Annotations: map[string]string{v1alpha1.AnnotationCluster: "west"}},
		InvolvedObject: corev1.ObjectReference{Kind: "Job", UID: w.jobs[0].UID, Name: "pi"}, ReportingController: v1alpha1.EventController,
		Reason: v1alpha1.EventMoved, Message: strings.Repeat("worker a ", 110), LastTimestamp: before(time.Minute),
	}
	w.details.HubEvents = slices.Repeat([]corev1.Event{of}, jobview.MaxEvents)
	w.details.WorkerEvents = slices.Repeat([]corev1.Event{of}, 2000) // a manager sends no more
	if made, sent := costOf(t, w, "/jobs/team-a/pi"); made > 48<<20 || sent > 1<<20 {
		t.Errorf("%d MiB are allocated, %d KiB sent", made>>20, sent>>10)
	}
}
