package checker

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/chaos/schedule"
	"github.com/jobferry/jobferry/e2e/chaos/story"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// What the hub didn't know of a mirror when a janitor deleted it may be done again, and nothing
// else.
func TestAfterAJanitor(t *testing.T) {
	for name, row := range map[string]struct {
		kind  schedule.Kind
		where string
		knows string // what the hub knows
		want  []Rule
	}{
		"not known":            {kind: schedule.DeleteMirrors, where: "open"},
		"known":                {kind: schedule.DeleteMirrors, where: "open", knows: "2", want: []Rule{Again}},
		"another one":          {kind: schedule.DeleteMirrors, where: "open", knows: "1"},
		"in another worker":    {kind: schedule.DeleteMirrors, where: "fenced", want: []Rule{Again}},
		"it deleted Pods only": {kind: schedule.DeleteEndedPods, where: "open", want: []Rule{Again}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.place("open")
			w.succeed(w.run("open", 2))
			if row.knows != "" {
				w.hub(completed(row.knows, 1))
			}
			w.fault(row.where, row.kind)()
			gone := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job", UID: w.mirrorOn("open")}}
			w.see(Event{Where: "open", Job: gone, Gone: true})
			w.place("open")
			w.succeed(w.run("open", 2))
			w.expect(row.want...)
		})
	}
}

// A janitor deletes a mirror while the hub's etcd is put back: the hub comes back with less than it
// knew, and the mirror can't tell it any more.
func TestAfterAJanitorDuringARestoreOfTheHub(t *testing.T) {
	for kind, want := range map[schedule.Kind][]Rule{schedule.RestoreHub: nil, schedule.KillHubEtcd: {Back, Back, Again}} {
		w := newWorld(t)
		w.place("open")
		w.succeed(w.run("open", 2))
		w.hub(completed("2", 1))
		restored := w.fault(schedule.Hub, kind)
		w.fault("open", schedule.DeleteMirrors)()
		w.see(Event{Where: "open", Job: &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job", UID: w.mirrorOn("open")}}, Gone: true})
		restored()
		w.hub(completed("", 0))
		w.mirrors["open"]++
		w.seeMirror("open", "hub-job", nil)
		w.succeed(w.run("open", 2))
		w.expect(want...)
	}
}

// A Job moves with what it has done, and a janitor deletes its next mirror: what that one had done
// may be done again.
func TestAfterAJanitorWhoTakesAMovedJob(t *testing.T) {
	w := newWorld(t, func(s *story.Story) { s.Job.Spec.Completions = ptr.To[int32](2) })
	end := func(s *batchv1.JobStatus) { complete(s); s.CompletedIndexes, s.Succeeded = "0,1", 2 }
	w.place("open")
	w.succeed(w.run("open", 0))
	w.hub(completed("0", 1))
	w.place("fenced")
	w.pass(time.Minute)
	w.succeed(w.run("fenced", 1))
	w.fault("fenced", schedule.DeleteMirrors)()
	w.seeMirror("fenced", "hub-job", &metav1.Time{Time: time.Unix(1_000_000, 0)})
	w.mirrors["fenced"]++
	w.seeMirror("fenced", "hub-job", nil)
	w.succeed(w.run("fenced", 1))
	w.hub(end)
	w.checker.CheckEnds(w.at)
	for _, v := range w.checker.Violations() {
		if v.Rule == Again {
			t.Error(v)
		}
	}
}

// A Job that waits for its worker may stay without an end if a janitor took its mirror, and the
// manager says so; no other.
func TestForsaken(t *testing.T) {
	for name, row := range map[string]struct {
		waits, swept, said bool
		want               []Rule
	}{
		"a janitor took it":  {waits: true, swept: true, said: true},
		"nobody took it":     {waits: true, said: true, want: []Rule{Lost}},
		"it's to be resumed": {swept: true, said: true, want: []Rule{Lost}},
		"nothing was said":   {waits: true, swept: true, want: []Rule{Lost}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(s *story.Story) {
				if row.waits {
					s.Job.Annotations = map[string]string{v1alpha1.AnnotationOnClusterLost: v1alpha1.OnClusterLostWait}
				}
			})
			w.place("open")
			if row.swept {
				w.fault("open", schedule.DeleteMirrors)()
			}
			if row.said {
				w.see(Event{Where: schedule.Hub, Said: &corev1.Event{
					InvolvedObject: corev1.ObjectReference{Name: "job", UID: hubJob}, Reason: v1alpha1.EventMirrorRecreated,
					Message: "The Job is gone: it isn't run again",
				}})
			}
			w.checker.CheckEnds(w.at)
			w.expect(row.want...)
		})
	}
}
