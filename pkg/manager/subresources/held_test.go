package subresources

import (
	"fmt"
	"net/http"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/util/costtest"
)

func manyLabels(n int) map[string]string {
	labels := map[string]string{}
	for i := range n {
		labels[fmt.Sprintf("l%x", i)] = ""
	}
	return labels
}

// TestLittleIsHeldOfAMirrorAndAPod: a request holds both while the worker doesn't answer another
// one.
func TestLittleIsHeldOfAMirrorAndAPod(t *testing.T) {
	const most = 1 << 20
	w := newWorld(t)
	labels := manyLabels(maxAnswerFields - 100)
	mirror := mirrorJob()
	for key := range mirror.Labels {
		labels[key] = mirror.Labels[key]
	}
	mirror.Labels = labels
	w.worker.object("/apis/batch/v1/namespaces/team/jobs/job", mirror)
	w.worker.object(podsPath, corev1.PodList{Items: []corev1.Pod{*pod("job-a", func(p *corev1.Pod) {
		p.Labels = manyLabels(maxAnswerFields / 2)
		p.Spec.Containers = make([]corev1.Container, 4000)
		for i := range p.Spec.Containers {
			p.Spec.Containers[i].Name = fmt.Sprint("c", i)
		}
	})}})
	before := costtest.Heap()
	var held []*chosen
	for range 20 {
		found, err := w.find.pod(t.Context(), &request{key: types.NamespacedName{Namespace: namespace, Name: "job"}}, podChoice{}, forLog)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, found)
	}
	took := (costtest.Heap() - before) / int64(len(held))
	t.Logf("%d KiB for each", took>>10)
	if took > most || held[0].job.UID != mirrorUID || len(held[0].pod.Spec.Containers) != maxContainers {
		t.Errorf("of a mirror and a Pod, %d KiB are held", took>>10)
	}
}

// TestManyFieldsAreRefused: a label of few bytes takes much memory.
func TestManyFieldsAreRefused(t *testing.T) {
	w := newWorld(t)
	w.worker.object("/apis/batch/v1/namespaces/team/jobs/job", mirrorJob(func(j *batchv1.Job) { j.Annotations = manyLabels(2 * maxAnswerFields) }))
	w.refused("pods", http.StatusBadGateway, "or has more than 10000 objects or 50000 fields")
}

// TestAnAnswerIsHeldInItsPlace: as long as a user gets what a worker has answered, it counts as one
// that is decoded. The user has a time to take it.
func TestAnAnswerIsHeldInItsPlace(t *testing.T) {
	w := newWorld(t)
	for _, what := range []string{"pods", "mirror"} {
		written, outside := 0, 0
		out := &sink{header: http.Header{}}
		out.meanwhile = func() {
			written++
			if w.find.links.of["w"].link.reads.Holders() != 1 || out.deadline.IsZero() {
				outside++
			}
		}
		w.asksFor(what, out)
		const end = 1 // of a list
		if written == 0 || outside > end || what == "mirror" && outside > 0 || !out.deadline.IsZero() {
			t.Errorf("%s: of %d writes, %d are outside of a place; in the end there's a deadline: %t", what, written, outside, !out.deadline.IsZero())
		}
	}
}
