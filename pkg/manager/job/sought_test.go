package job

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// A hub Job is deleted while its worker is lost, and its mirror loses its marks before a manager
// sees it that knows of it: only its Pods tell that it's a mirror.
func TestMirrorsThatOnlyTheirPodsShow(t *testing.T) {
	for name, row := range map[string]struct {
		changes func(*batchv1.Job)
		strips  bool
		returns bool   // another Job of the name is on the hub
		fails   string // a request, the first time
		isLeft  bool
	}{
		"without its marks":                           {},
		"its worker doesn't answer at first":          {fails: "a get"},
		"its worker doesn't delete it at first":       {fails: "a delete"},
		"the hub doesn't answer at first":             {fails: "hub get"},
		"a policy keeps them away":                    {strips: true},
		"another Job has its name":                    {returns: true},
		"it was left to the worker":                   {isLeft: true, changes: func(m *batchv1.Job) { m.Annotations = map[string]string{v1alpha1.AnnotationLeft: "true"} }},
		"it's another hub's":                          {isLeft: true, changes: func(m *batchv1.Job) { m.Labels = map[string]string{v1alpha1.LabelOrigin: "hub-2"} }},
		"another hub's, which lost its marks, too":    {isLeft: true, changes: madeAs("hub-2", "train")},
		"a copy of another's":                         {isLeft: true, changes: madeAs("hub-1", "other")},
		"somebody's, whose Pods are made up":          {isLeft: true, changes: func(m *batchv1.Job) { m.Spec.Template.Labels = nil }},
		"somebody's, who has copied our Pods' labels": {isLeft: true, changes: func(m *batchv1.Job) { m.Spec.ManualSelector, m.Spec.Selector = nil, nil }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.mayRunTwice = true
			runs(w)
			a := w.worker("a")
			a.api.change(jobKey, func(m *batchv1.Job) { // as a real hub's API server has it in the hub Job
				m.Spec.Template.Labels[batchv1.ControllerUidLabel] = string(w.hub.jobs[jobKey].UID)
			})
			a.isLost()
			w.deletes(background)
			w.step(30 * time.Minute)
			if w.hub.jobs[jobKey] != nil {
				w.fail("it isn't gone from the hub:\n%s", w.state())
			}
			a.api.strips = row.strips
			losesItsMarks(w, "a")
			if row.changes != nil {
				a.api.change(jobKey, row.changes)
			}
			uid := a.api.jobs[jobKey].UID
			w.start()
			a.isBack()
			if row.returns {
				w.submits(aJob("train"))
			}
			if row.fails != "" {
				w.refusesOnce(row.fails, apierrors.NewTimeoutError("slow", 1))
			}
			for range 2 {
				w.triggers.enqueueUnmarked()
				w.step(10 * time.Minute)
			}
			if m := a.api.jobs[jobKey]; (m != nil && m.UID == uid) != row.isLeft {
				w.fail("left: %v:\n%s", !row.isLeft, w.state())
			}
			if !row.isLeft && len(w.hub.jobs) == 0 && len(w.store.records) > 0 {
				w.fail("%d records are kept:\n%s", len(w.store.records), w.state())
			}
		})
	}
}

// madeAs gives a mirror the id that a hub of some origin makes for a Job of some name.
func madeAs(origin v1alpha1.Origin, name string) func(*batchv1.Job) {
	return func(m *batchv1.Job) {
		id := mirror.NewID(origin, types.NamespacedName{Namespace: m.Namespace, Name: name})
		m.Spec.Template.Labels[v1alpha1.LabelMirrorID], m.Spec.Selector.MatchLabels[v1alpha1.LabelMirrorID] = id, id
	}
}

// A worker removes the label by which a mirror selects its Pods: the mirror is taken back before
// its Job controller has made very many. Pods that only say that they are of a mirror do nothing to
// one that has some.
func TestPodsWithoutTheirLabel(t *testing.T) {
	for name, row := range map[string]struct {
		of               types.UID // empty: the mirror
		has              bool      // the mirror has found Pods
		manual           bool      // its user has written its selector
		isStandby, stays bool
	}{
		"its first":              {},
		"one beside others":      {has: true, stays: true},
		"another Job's":          {of: "another", stays: true},
		"of the user's selector": {manual: true, stays: true},
		"seen by a standby":      {isStandby: true, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.worker("a")
			a.idle = true
			w.submits(aJob("train", func(j *batchv1.Job) {
				if row.manual {
					j.Spec.ManualSelector, j.Spec.Selector = ptr.To(true), &metav1.LabelSelector{MatchLabels: map[string]string{"app": "train"}}
					j.Spec.Template.Labels = map[string]string{"app": "train"}
				}
			}))
			w.step(time.Second)
			a.api.change(jobKey, func(m *batchv1.Job) {
				m.Status.StartTime, m.Status.Active = ptr.To(metav1.NewTime(w.clock.Now())), 2
				if row.has {
					m.Status.Ready = ptr.To[int32](1)
				}
			})
			w.step(time.Second)
			uid := a.api.jobs[jobKey].UID
			led := w.startup.begun
			if row.isStandby {
				w.startup.begun = make(chan struct{})
			}
			w.triggers.PodUnlabelled("a", jobKey, cmp.Or(row.of, uid))
			w.startup.begun = led
			w.run()
			a.idle = false
			w.step(time.Minute)
			m := a.api.jobs[jobKey]
			if stays := m != nil && m.UID == uid; stays != row.stays || w.running("b") == row.stays {
				w.fail("it stays: %v\n%s", stays, w.state())
			}
			says := slices.ContainsFunc(w.events, func(e string) bool { return strings.Contains(e, "removes the label "+v1alpha1.LabelMirrorID) })
			if says == row.stays {
				w.fail("events: %q", w.events)
			}
		})
	}
}

// A mirror without marks ends as its Job moves, and the hub takes only some writes for a while;
// then the manager ends. What the mirror did isn't done again.
func TestEndWithoutMarksThatTheHubDoesntTake(t *testing.T) {
	for takes := range 4 {
		for restart := range 4 {
			w := newWorld(t)
			w.submits(aJob("train", identified))
			w.step(time.Minute)
			a := stopsWithoutMarks(w)
			a.completes(4)
			a.api.change(jobKey, func(m *batchv1.Job) {
				a.condition(m, batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue)
				isComplete(m)
				m.Status.CompletionTime = ptr.To(metav1.NewTime(a.now()))
			})
			left := takes
			w.refuses = func(sent write) error {
				if sent.server == "hub" && sent.verb == "status" {
					if left--; left < 0 {
						return apierrors.NewTimeoutError("away", 1)
					}
				}
				return nil
			}
			for range restart {
				w.step(awaitAtMost)
			}
			w.refuses = nil
			w.start()
			w.step(20 * time.Minute)
			if job := w.hub.jobs[jobKey]; !mirror.Finished(job) || job.Status.Succeeded != 4 || w.running("b") || a.api.jobs[jobKey] != nil {
				w.fail("restart %d after %d writes ends as:\n%s", restart, takes, w.state())
			}
		}
	}
}

// A Job is to leave a worker before it has started there, as the one before has its mirror, without
// marks: its progress isn't lost on the way.
func TestAJobMovesOnBeforeItHasArrived(t *testing.T) {
	for name, leaves := range map[string]func(w *world){
		"it's drained":       func(w *world) { w.worker("b").drains(true) },
		"it's being removed": func(w *world) { w.worker("b").isRemoved(v1alpha1.RemovalMove) },
		"it refuses the Job": func(w *world) { w.worker("b").has(aJob("train")) },
		"another selector":   func(w *world) { w.edits("selects c", annotated(v1alpha1.AnnotationClusterSelector, "name=c")) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := w.addWorker("c", 4)
			c.view.Labels = map[string]string{"name": "c"}
			c.connect()
			c.view.Spec.Cordoned = true
			w.submits(aJob("train", identified))
			w.step(time.Minute)
			a := stopsWithoutMarks(w)
			a.idle = true // its Pods take a while to end
			c.view.Spec.Cordoned = false
			leaves(w)
			w.step(2 * time.Second)
			a.idle = false
			a.completes(3)
			w.step(20 * time.Minute)
			if m := c.api.jobs[jobKey]; m == nil || m.Status.Succeeded != 3 || w.running("a") || w.running("b") {
				w.fail("ends as:\n%s", w.state())
			}
		})
	}
}

// A mirror has lost its marks while no manager was there, and its worker is drained, or is being
// removed: the Job takes its progress along.
func TestAJobLeavesAMirrorThatNobodySaw(t *testing.T) {
	for name, leaves := range map[string]func(w *world){
		"it's drained":       func(w *world) { w.worker("a").drains(true) },
		"it's being removed": func(w *world) { w.worker("a").isRemoved(v1alpha1.RemovalMove) },
		"another selector": func(w *world) {
			w.edits("selects b", annotated(v1alpha1.AnnotationClusterSelector, "name=b"))
		},
	} {
		for i := range 4 {
			strips, returned := i%2 == 1, i/2 == 1
			t.Run(fmt.Sprintf("%s, a policy keeps them away: %v, it has come back: %v", name, strips, returned), func(t *testing.T) {
				w := newWorld(t)
				w.worker("b").view.Labels = map[string]string{"name": "b"}
				w.submits(aJob("train", identified))
				w.step(time.Minute)
				a := w.worker("a")
				a.completes(3)
				w.step(time.Second)
				a.completes(1) // nobody sees that
				if returned {
					w.edits("has an account", kept(hubstate.Usage, fmt.Sprintf(`[{"worker":"a","uid":%q,"left":true,"at":1000}]`, a.api.jobs[jobKey].UID)))
				}
				a.idle, a.api.strips = true, strips
				losesItsMarks(w, "a")
				leaves(w)
				w.start()
				a.idle = false
				w.step(20 * time.Minute)
				if job := w.hub.jobs[jobKey]; !mirror.Finished(job) || job.Status.Succeeded != 4 || w.running("a") || w.running("b") {
					w.fail("ends as:\n%s", w.state())
				}
			})
		}
	}
}
