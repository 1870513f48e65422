package job

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// When nobody can say when those end that run, the room is kept without a time.
func TestReservationWithoutATime(t *testing.T) {
	w := newWorld(t)
	w.worker("b").drains(true)
	w.queues(aJob("runs", pods(7)), aJob("brief", pods(1), deadline(time.Hour)), aJob("wide", pods(8)), aJob("later", pods(1)))
	for _, when := range []string{"at first", "an hour later"} {
		wide, err := w.Explain(w.Context(), inTeam("wide"))
		if want := (v1alpha1.WaitingExplanation{Place: 1, Of: 2, Worker: "a"}); err != nil || !equality.Semantic.DeepEqual(wide.Waiting, &want) {
			w.fail("%s: %+v, %v, want %+v", when, wide.Waiting, err, want)
		}
		w.step(time.Hour)
	}
	w.ends("brief")
	w.wantPlaced(map[string]string{"wide": "", "later": ""})
	w.ends("runs")
	w.wantPlaced(map[string]string{"wide": "a", "later": ""})
}

// A Job that comes right after one that is to have a reservation doesn't slip in before that's
// made.
func TestNoJobSlipsInBeforeAReservation(t *testing.T) {
	w := newWorld(t)
	w.worker("b").drains(true)
	w.queues(aJob("runs", pods(7), deadline(time.Hour)))
	w.submits(aJob("wide", pods(8)))
	w.run()
	w.submits(aJob("younger", pods(1)))
	w.step(time.Second)
	w.wantPlaced(map[string]string{"wide": "", "younger": ""})
	if told := strings.Join(w.log, "\n"); !strings.Contains(told, "1 reserved for a Job that goes before this one") {
		w.fail("nobody has said why younger waits")
	}
}

// A Job that isn't there any more, or doesn't want room, keeps nobody from it.
func TestReservationEndsWithItsJob(t *testing.T) {
	for name, ends := range map[string]func(*world){
		"deleted": func(w *world) {
			if err := w.hub.delete(inTeam("wide"), client.DeleteOptions{}); err != nil {
				w.Fatal(err)
			}
		},
		"suspended": func(w *world) { w.hub.change(inTeam("wide"), suspended(true)) },
		"smaller":   func(w *world) { w.hub.change(inTeam("wide"), func(job *batchv1.Job) { *job.Spec.Parallelism = 1 }) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newFullWorld(t)
			w.queues(aJob("wide", pods(8)), aJob("later", pods(1)))
			w.ends("small-1")
			w.wantPlaced(map[string]string{"later": ""})
			ends(w)
			w.step(time.Second)
			if name == "smaller" {
				w.wantPlaced(map[string]string{"wide": "a", "later": ""})
				w.ends("small-2")
			}
			w.wantPlaced(map[string]string{"later": "a"})
		})
	}
}
