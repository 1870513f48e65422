package checker

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/e2e/chaos/schedule"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// say shows an event about a hub Job.
func (w *world) say(of types.UID, reason string) {
	w.see(Event{Where: schedule.Hub, Said: &corev1.Event{InvolvedObject: corev1.ObjectReference{Name: "job", UID: of}, Reason: reason}})
}

// listen lets time pass, and listens every second.
func (w *world) listen(d time.Duration) {
	for end := w.at + d; w.at < end; {
		w.pass(time.Second)
		w.checker.Listen(w.at)
	}
}

// ready shows that a Pod that runs is ready.
func (w *world) ready(e Event) {
	e.Pod = e.Pod.DeepCopy()
	e.Pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	w.see(e)
}

const (
	hubJob = "hub-job"
	minute = time.Minute
)

// silences are lives of a Job, and what they break.
var silences = map[string]struct {
	life func(w *world)
	want []Rule
}{
	"not placed":                            {func(w *world) { w.hub(); w.listen(2 * minute) }, []Rule{Silent}},
	"reported once for as long as it lasts": {func(w *world) { w.hub(); w.listen(10 * minute) }, []Rule{Silent}},
	"and again when it's silent again": {func(w *world) {
		w.hub()
		w.listen(2 * minute)
		w.place("open")
		w.listen(2 * minute)
	}, []Rule{Silent, Silent}},
	"placed, and no Pod comes": {func(w *world) { w.place("open"); w.listen(2 * minute) }, []Rule{Silent}},
	"a Pod runs for long": {func(w *world) {
		w.place("open")
		w.ready(w.run("open", 0))
		w.listen(10 * minute)
	}, nil},
	"it never gets ready": {func(w *world) {
		w.place("open")
		w.run("open", 0)
		w.listen(2 * minute)
	}, []Rule{Silent}},
	"it runs where the Job isn't placed": {func(w *world) {
		w.place("fenced")
		p := w.run("fenced", 0)
		w.place("open")
		w.ready(p)
		w.listen(2 * minute)
	}, []Rule{Silent}},
	"it has run": {func(w *world) {
		w.place("open")
		p := w.run("open", 0)
		w.ready(p)
		w.listen(5 * minute)
		w.succeed(p)
		w.listen(2 * minute)
	}, []Rule{Silent}},
	"a reason was given": {func(w *world) {
		w.hub()
		w.say(hubJob, v1alpha1.EventPending)
		w.listen(10 * minute)
	}, nil},
	"before the Job was seen": {func(w *world) {
		w.say(hubJob, v1alpha1.EventPending)
		w.hub()
		w.listen(10 * minute)
	}, nil},
	"of another Job of the name": {func(w *world) {
		w.hub()
		w.say("other", v1alpha1.EventPending)
		w.listen(2 * minute)
	}, []Rule{Silent}},
	"before it made progress": {func(w *world) {
		w.hub()
		w.say(hubJob, v1alpha1.EventPending)
		w.listen(minute)
		w.place("open")
		w.listen(2 * minute)
	}, []Rule{Silent}},
	"what was done is no reason": {func(w *world) {
		w.place("open")
		w.say(hubJob, v1alpha1.EventPlaced)
		w.listen(2 * minute)
	}, []Rule{Silent}},
	"but a word": {func(w *world) {
		w.place("open")
		for range 5 {
			w.listen(80 * time.Second)
			w.say(hubJob, v1alpha1.EventMirrorRecreated)
		}
	}, nil},
	"so is a change of the status": {func(w *world) {
		w.hub()
		for _, message := range []string{"a", "b", "c"} {
			w.listen(80 * time.Second)
			w.hub(func(s *batchv1.JobStatus) { s.Conditions = []batchv1.JobCondition{{Type: "x", Message: message}} })
		}
	}, nil},
	"out of touch": {func(w *world) {
		w.place("open")
		w.fault("open", schedule.BlackHoleLink)
		w.say(hubJob, v1alpha1.EventOutOfTouch)
		w.listen(10 * minute)
	}, nil},
	"and back": {func(w *world) {
		w.place("open")
		heal := w.fault("open", schedule.BlackHoleLink)
		w.say(hubJob, v1alpha1.EventOutOfTouch)
		w.listen(10 * minute)
		heal()
		w.listen(minute)
		w.expect()
		w.listen(minute)
	}, []Rule{Silent}},
	"it has ended": {func(w *world) { w.place("open"); w.hub(complete); w.listen(10 * minute) }, nil},
}

// A Job that makes no progress has a word about it, or is a violation.
func TestSilence(t *testing.T) {
	for name, row := range silences {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			row.life(w)
			w.expect(row.want...)
		})
	}
}

// A Job that its user has suspended, or deletes, waits for nothing as soon as its Pods have ended.
func TestSilenceOfItsUser(t *testing.T) {
	yes := true
	for name, row := range map[string]struct {
		change func(*batchv1.Job)
		pod    bool
		want   []Rule
	}{
		"suspended":           {func(j *batchv1.Job) { j.Spec.Suspend = &yes }, false, nil},
		"its Pod runs on":     {func(j *batchv1.Job) { j.Spec.Suspend = &yes }, true, []Rule{Silent}},
		"deleted, not gone":   {deleted, false, []Rule{Silent}},
		"and its Pod runs on": {deleted, true, []Rule{Silent}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.place("open")
			if row.pod {
				w.ready(w.run("open", 0))
			}
			job := w.checker.records["job"].hub.DeepCopy()
			row.change(job)
			w.see(Event{Where: schedule.Hub, Job: job})
			w.listen(2 * time.Minute)
			w.expect(row.want...)
		})
	}
}

func deleted(j *batchv1.Job) { j.DeletionTimestamp = new(metav1.Now()) }
