package job

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// Somebody removes a mirror's marks: the same mirror has them again, and runs nowhere else. No
// event says that anything is done again.
func TestRemovedMarks(t *testing.T) {
	for name, remove := range map[string]func(*batchv1.Job){
		"the label":      func(m *batchv1.Job) { delete(m.Labels, v1alpha1.LabelOrigin) },
		"the annotation": func(m *batchv1.Job) { delete(m.Annotations, v1alpha1.AnnotationHubUID) },
		"both":           func(m *batchv1.Job) { m.Labels, m.Annotations = nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.submits(aJob("train"))
			w.step(time.Minute)
			before := w.worker("a").api.jobs[jobKey]
			w.worker("a").api.change(jobKey, remove)
			w.step(time.Minute)
			after := w.worker("a").api.jobs[jobKey]
			if slices.ContainsFunc(w.events, func(e string) bool { return strings.Contains(e, v1alpha1.EventMirrorRecreated) }) {
				w.fail("events: %q", w.events)
			}
			if after.UID != before.UID || mirror.Owns("hub-1", w.hub.jobs[jobKey].UID, after) != mirror.Ours || w.running("b") {
				w.fail("ends as:\n%s", w.state())
			}
		})
	}
}

// identified gives a Job's Pods the label by which they say whose they are.
func identified(j *batchv1.Job) {
	j.Spec.Template.Labels = map[string]string{batchv1.ControllerUidLabel: "hub-1"}
}

// Marks are removed before the hub knows of the mirror, and the manager ends: the mirror's Pods say
// whose it is.
func TestMarksRemovedBeforeTheHubKnows(t *testing.T) {
	for name, mends := range map[string]bool{"once": true, "again and again": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.submits(aJob("train", identified))
			a := w.worker("a")
			if _, err := w.runUntil(func() bool { return a.api.jobs[jobKey] != nil }); err != nil {
				t.Fatal(err)
			}
			before := a.api.jobs[jobKey].UID
			a.api.change(jobKey, func(m *batchv1.Job) { m.Labels, m.Annotations = nil, nil })
			a.api.strips, w.events = !mends, nil
			w.start()
			w.step(time.Minute)
			if mends && slices.ContainsFunc(w.events, func(e string) bool { return strings.Contains(e, v1alpha1.EventMirrored) }) {
				w.fail("events: %q", w.events)
			}
			if after := a.api.jobs[jobKey]; w.running("b") == mends || mends && (after == nil || after.UID != before) || !mends && after != nil {
				w.fail("ends as:\n%s", w.state())
			}
			for _, e := range w.events {
				if strings.Contains(e, v1alpha1.EventConflict) {
					w.fail("events: %q", w.events)
				}
			}
		})
	}
}

// A mirror that can't have its marks is taken back before its Job goes on elsewhere.
func TestMarksThatCantBe(t *testing.T) {
	for name, prepare := range map[string]func(*world){
		"a new mirror": func(w *world) { w.worker("a").api.strips = true; w.submits(aJob("train")) },
		"one that runs": func(w *world) {
			w.submits(aJob("train"))
			w.step(time.Minute)
			w.worker("a").api.strips = true
			w.worker("a").api.change(jobKey, func(m *batchv1.Job) { m.Annotations["example.org/touched"] = "true" })
		},
	} {
		for _, ttl := range []*int32{nil, ptr.To[int32](3600)} { // a policy sets it, too
			t.Run(fmt.Sprintf("%s, with a TTL: %v", name, ttl != nil), func(t *testing.T) {
				w := newWorld(t)
				w.worker("a").api.ttl = ttl
				prepare(w)
				w.step(time.Minute)
				if w.worker("a").api.jobs[jobKey] != nil || !w.running("b") {
					w.fail("ends as:\n%s", w.state())
				}
				if !slices.ContainsFunc(w.events, func(e string) bool { return strings.Contains(e, "removes "+v1alpha1.LabelOrigin) }) {
					w.fail("events: %q", w.events)
				}
			})
		}
	}
}

// What a mirror has done that can't have its marks isn't done again.
func TestProgressWithoutMarks(t *testing.T) {
	for name, row := range map[string]struct {
		completes      int32
		ends, restarts bool
	}{
		"a part":                           {completes: 1},
		"all":                              {completes: 4, ends: true},
		"a part, and the manager restarts": {completes: 1, restarts: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.submits(aJob("train", identified))
			w.step(time.Minute)
			a := w.worker("a")
			a.api.strips = true
			a.api.change(jobKey, func(m *batchv1.Job) { m.Annotations["example.org/touched"] = "true" })
			a.completes(row.completes)
			if row.restarts {
				_, _ = w.runUntil(func() bool { m := a.api.jobs[jobKey]; return m == nil || mirror.Suspended(m) })
				for step := 0; a.api.jobs[jobKey] != nil && step < 20; step++ { // whenever it ends
					w.start()
					_, _ = w.runUntil(func() bool { return true })
					a.work()
				}
				w.start()
			}
			w.step(time.Minute)
			job := w.hub.jobs[jobKey]
			if job.Status.Succeeded != row.completes || mirror.Finished(job) != row.ends || w.running("b") == row.ends {
				w.fail("ends as:\n%s", w.state())
			}
			if w.worker("a").api.jobs[jobKey] != nil {
				w.fail("the mirror is there")
			}
		})
	}
}

// A mirror that can have neither its marks nor be suspended is deleted at once, however its status
// changes.
func TestMarksThatCantBeOfAMirrorThatCantBeSuspended(t *testing.T) {
	w := newWorld(t)
	runs(w)
	a := w.worker("a")
	a.api.strips = true
	a.api.change(jobKey, func(m *batchv1.Job) { m.Annotations["example.org/touched"] = "true" })
	w.refuses = func(sent write) error {
		if sent.server != "a" || sent.verb != "patch" || a.api.jobs[jobKey] == nil {
			return nil
		}
		a.api.change(jobKey, func(m *batchv1.Job) { m.Annotations["example.org/touched"] += "!" })
		return apierrors.NewForbidden(batchv1.Resource("jobs"), jobKey.Name, errors.New("not here"))
	}
	w.step(time.Second)
	if m := a.api.jobs[jobKey]; m != nil && m.DeletionTimestamp == nil {
		w.fail("ends as:\n%s", w.state())
	}
}

// Nor is what it does while its Job moves from there.
func TestProgressWithoutMarksAsAJobMoves(t *testing.T) {
	w := newWorld(t)
	runs(w)
	a := stopsWithoutMarks(w)
	before := a.api.jobs[jobKey].Status.Succeeded
	a.api.change(jobKey, func(m *batchv1.Job) {
		m.Status.Active, m.Status.Ready, m.Status.Succeeded = m.Status.Active-1, nil, before+1
	})
	w.step(2 * time.Minute)
	if w.hub.jobs[jobKey].Status.Succeeded != before+1 || !w.running("b") || a.api.jobs[jobKey] != nil {
		w.fail("ends as:\n%s", w.state())
	}
}

// A shard leaves its worker, whose policy removes the marks of its mirror as that is stopped: what
// it has done isn't done again, whenever its manager ends.
func TestProgressWithoutMarksAsAShardLeaves(t *testing.T) {
	for restart := range 8 {
		w := newWorld(t)
		w.submits(divisible(16, 12, identified))
		w.step(time.Second)
		b := w.worker("b")
		b.api.strips = true
		b.finishes(1)
		b.drains(true)
		for range restart {
			_, _ = w.runUntil(func() bool { return true })
			b.work()
		}
		w.start()
		w.step(2 * time.Minute)
		if b.api.jobs[jobKey] != nil {
			w.fail("restart %d ends as:\n%s", restart, w.state())
		}
		w.finishAll()
		w.expectComplete("0-15")
	}
}

// A divided Job ends in the first turn of a manager that doesn't see one of its mirrors: that goes,
// too.
func TestADividedJobEndsWithoutMarks(t *testing.T) {
	w := newWorld(t)
	w.submits(divisible(16, 12, identified))
	w.step(time.Second)
	losesItsMarks(w, "b")
	w.worker("a").api.change(jobKey, func(m *batchv1.Job) {
		m.Status.Active, m.Status.Ready = 0, nil
		for _, c := range []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed} {
			m.Status.Conditions = append(m.Status.Conditions, batchv1.JobCondition{
				Type: c, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonBackoffLimitExceeded, LastTransitionTime: metav1.NewTime(w.clock.Now()),
			})
		}
	})
	w.start()
	w.step(time.Minute)
	if !mirror.Finished(w.hub.jobs[jobKey]) || w.worker("b").api.jobs[jobKey] != nil {
		w.fail("ends as:\n%s", w.state())
	}
}

// Nor if its mirror ends there, and the manager does, too.
func TestEndWithoutMarksAsAJobMoves(t *testing.T) {
	for restart := range 10 {
		w := newWorld(t)
		w.submits(aJob("train", identified))
		w.step(time.Minute)
		a := stopsWithoutMarks(w)
		a.completes(4)
		for range restart {
			_, _ = w.runUntil(func() bool { return true })
			a.work()
		}
		w.start()
		w.step(2 * time.Minute)
		if job := w.hub.jobs[jobKey]; !mirror.Finished(job) || job.Status.Succeeded != 4 || w.running("b") || a.api.jobs[jobKey] != nil {
			w.fail("restart %d ends as:\n%s", restart, w.state())
		}
	}
}

// A Job is deleted while its mirror is taken back: nothing of it stays.
func TestDeletedWithoutMarks(t *testing.T) {
	w := newWorld(t)
	w.worker("a").api.strips = true
	w.submits(aJob("train"))
	w.step(time.Second)
	if w.worker("a").api.jobs[jobKey] == nil {
		w.fail("it's gone already")
	}
	w.deletes(metav1.DeletePropagationBackground)
	w.step(2 * awaitAtMost)
	if w.hub.jobs[jobKey] != nil || w.worker("a").api.jobs[jobKey] != nil {
		w.fail("ends as:\n%s", w.state())
	}
}

// A mirror loses its marks as its Job is deleted: the Job doesn't go before it.
func TestDeletedAsMarksGo(t *testing.T) {
	w := newWorld(t)
	runs(w)
	a := w.worker("a")
	a.api.change(jobKey, func(m *batchv1.Job) { delete(m.Labels, v1alpha1.LabelOrigin) })
	w.deletes(metav1.DeletePropagationBackground)
	w.step(time.Minute)
	if w.hub.jobs[jobKey] != nil || a.api.jobs[jobKey] != nil {
		w.fail("ends as:\n%s", w.state())
	}
}

// The mirror of a Job that isn't to run twice loses its marks: it's found by its name.
func TestRemovedMarksOfAJobThatWaits(t *testing.T) {
	w := newWorld(t)
	w.submits(aJob("train", func(j *batchv1.Job) {
		metav1.SetMetaDataAnnotation(&j.ObjectMeta, v1alpha1.AnnotationOnClusterLost, v1alpha1.OnClusterLostWait)
	}))
	w.step(time.Minute)
	w.worker("a").api.change(jobKey, func(m *batchv1.Job) { delete(m.Labels, v1alpha1.LabelOrigin) })
	w.step(time.Minute)
	w.worker("a").completes(4)
	w.step(time.Minute)
	if !mirror.Finished(w.hub.jobs[jobKey]) {
		w.fail("ends as:\n%s", w.state())
	}
	if slices.ContainsFunc(w.events, func(e string) bool { return strings.Contains(e, "isn't run again") }) {
		w.fail("events: %q", w.events)
	}
}

// accounted has the hub Job have an account of its mirrors.
func accounted(w *world) {
	var mirrors []string
	for _, v := range w.registered() {
		if m := v.api.jobs[jobKey]; m != nil && mirror.HubUID(m) != "" {
			mirrors = append(mirrors, fmt.Sprintf(`{"worker":"%s","uid":"%s","seconds":5,"at":1000}`, v.Name(), m.UID))
		}
	}
	w.edits("has an account", kept(hubstate.Usage, "["+strings.Join(mirrors, ",")+"]"))
	w.run()
}

// stopsWithoutMarks has the Job leave a, whose policy removes the marks as its mirror is suspended.
func stopsWithoutMarks(w *world) *fakeWorker {
	a := w.worker("a")
	a.api.strips = true
	a.drains(true)
	_, _ = w.runUntil(func() bool { return mirror.Suspended(a.api.jobs[jobKey]) })
	return a
}

// losesItsMarks has the mirror in a worker lose what says that it's ours.
func losesItsMarks(w *world, worker string) {
	w.worker(worker).api.change(jobKey, func(m *batchv1.Job) { m.Labels, m.Annotations = nil, nil })
}

// runsAndEnds has the Job run in a, and end.
func runsAndEnds(w *world) {
	runs(w)
	w.worker("a").completes(3)
	w.step(time.Second)
	accounted(w)
}

// isComplete is what somebody writes who ends a Job.
func isComplete(j *batchv1.Job) {
	j.Status.Active, j.Status.CompletionTime = 0, ptr.To(metav1.NewTime(noon))
	j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue})
}

// lossesAtTheEnd have a mirror lose its marks as its Job ends.
func lossesAtTheEnd() map[string]func(*world) {
	return map[string]func(*world){
		"its Job has ended": func(w *world) {
			runsAndEnds(w)
			losesItsMarks(w, "a")
		},
		"its Job has ended, and a policy keeps them away": func(w *world) {
			runsAndEnds(w)
			w.worker("a").api.strips = true
			losesItsMarks(w, "a")
		},
		"its Job had another mirror there before": func(w *world) {
			runsAndEnds(w)
			w.edits("has an account of both", kept(hubstate.Usage, fmt.Sprintf(
				`[{"worker":"a","uid":"former","left":true,"at":1000},{"worker":"a","uid":%q,"at":1000}]`, w.worker("a").api.jobs[jobKey].UID)))
			w.run()
			losesItsMarks(w, "a")
			w.start()
		},
		"another one is being taken back as its Job ends": func(w *world) {
			runs(w)
			b := w.worker("b")
			b.has(aJob("train", suspended(true)))
			taken := b.api.jobs[jobKey].UID
			w.store.open(jobKey).updateMirror("b", func(m *mirrorMemory) { m.created, m.takenBack = taken, "removes the marks" })
			w.worker("a").completes(3)
			w.step(time.Second)
			w.start()
		},
		"its Job has ended, and no manager is there": func(w *world) {
			runsAndEnds(w)
			losesItsMarks(w, "a")
			w.start()
		},
		"its Job has ended, and a new one has its name": func(w *world) {
			runsAndEnds(w)
			losesItsMarks(w, "a")
			w.start()
			w.run()
			w.deletes(background)
			w.deliver()
			w.submits(aJob("train"))
			w.step(time.Minute)
			w.worker("a").completes(4)
			w.step(time.Minute)
		},
		"it runs, and its Job has ended": func(w *world) {
			runs(w)
			accounted(w)
			w.edits("ends the Job", isComplete)
			losesItsMarks(w, "a")
		},
		"it runs, its Job has ended, and a policy keeps them away": func(w *world) {
			runs(w)
			accounted(w)
			w.worker("a").api.strips = true
			w.edits("ends the Job", isComplete)
			losesItsMarks(w, "a")
		},
		"its worker was lost, and its Job has ended elsewhere": func(w *world) {
			runs(w)
			accounted(w)
			w.mayRunTwice = true
			w.worker("a").isLost()
			w.step(time.Minute)
			w.worker("b").completes(4)
			w.step(time.Minute)
			w.worker("a").api.change(jobKey, isComplete)
			losesItsMarks(w, "a")
			w.worker("a").isBack()
		},
	}
}

// lossesOfShards have the mirror of a shard lose its marks before its Job ends.
func lossesOfShards() map[string]func(*world) {
	divided := func(w *world) {
		w.submits(divisible(16, 12, annotated(v1alpha1.AnnotationMaxClusters, v1alpha1.MaxClustersAll)))
		w.step(time.Second)
		w.worker("a").finishes(12)
		w.step(time.Second)
	}
	end := func(w *world) {
		for range 20 {
			w.worker("a").finishes(12)
			w.worker("b").finishes(12)
			w.step(time.Second)
		}
	}
	return map[string]func(*world){
		"it's a shard's that is settled": func(w *world) {
			divided(w)
			losesItsMarks(w, "a")
			end(w)
		},
		"it's a shard's that runs": func(w *world) {
			divided(w)
			losesItsMarks(w, "b")
			end(w)
		},
	}
}

// leavesNothing checks that nothing of the Job runs any more, and that nothing stays of it once
// it's deleted.
func leavesNothing(w *world) {
	w.step(2 * time.Minute)
	for _, v := range w.registered() {
		if m := v.api.jobs[jobKey]; m != nil && m.Status.Active > 0 || !mirror.Finished(w.hub.jobs[jobKey]) {
			w.fail("it runs on:\n%s", w.state())
		}
	}
	w.deletes(background)
	w.step(2 * time.Minute)
	for _, v := range w.registered() {
		if v.api.jobs[jobKey] != nil || len(w.store.records) > 0 {
			w.fail("it's left in %s, with %d records:\n%s", v.Name(), len(w.store.records), w.state())
		}
	}
}

// Whenever a mirror loses its marks, nothing of it stays, nor runs, once its Job has ended and is
// deleted.
func TestNothingWithoutMarksIsLeft(t *testing.T) {
	losses := lossesAtTheEnd()
	maps.Copy(losses, lossesOfShards())
	for name, happens := range losses {
		for _, ttl := range []*int32{nil, ptr.To[int32](3600)} { // a policy sets it
			t.Run(fmt.Sprintf("%s, with a TTL: %v", name, ttl != nil), func(t *testing.T) {
				w := newWorld(t)
				w.worker("a").api.ttl, w.worker("b").api.ttl = ttl, ttl
				happens(w)
				leavesNothing(w)
			})
		}
	}
}

// A Job goes in the end though its worker lets nobody read whether it has a mirror.
func TestDeletedWhereNothingCanBeRead(t *testing.T) {
	w := newWorld(t)
	w.worker("b").drains(true)
	w.refuses = func(sent write) error {
		if sent.server == "a" && sent.verb != "list" {
			return apierrors.NewForbidden(batchv1.Resource("jobs"), jobKey.Name, errors.New("no"))
		}
		return nil
	}
	w.submits(aJob("train"))
	w.step(time.Second)
	w.deletes(background)
	w.step(20 * time.Minute)
	if w.hub.jobs[jobKey] != nil {
		w.fail("ends as:\n%s", w.state())
	}
}
