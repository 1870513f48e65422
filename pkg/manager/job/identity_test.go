package job

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// stagesOfALife bring a Job there.
func stagesOfALife() map[string]func(*world) {
	return map[string]func(*world){
		"before it's placed": func(*world) {},
		"while it runs":      runs,
		"while it's suspended": func(w *world) {
			runs(w)
			w.suspends()
			w.step(time.Second)
		},
		"while it moves": func(w *world) {
			runs(w)
			w.worker("a").api.change(jobKey, func(m *batchv1.Job) { m.Finalizers = []string{"example.org/slow"} })
			w.worker("a").drains(true)
			w.step(time.Second)
		},
		"when it has moved": func(w *world) {
			runs(w)
			w.worker("a").drains(true)
			w.step(time.Minute)
		},
		"when its worker is out of reach": func(w *world) {
			runs(w)
			w.worker("a").disconnects()
			w.step(time.Second)
		},
		"when it has finished": func(w *world) {
			runs(w)
			w.worker("a").completes(3)
			w.step(time.Second)
		},
		"while it's being deleted": func(w *world) {
			runs(w)
			w.worker("a").api.change(jobKey, func(m *batchv1.Job) { m.Finalizers = []string{"example.org/slow"} })
			w.deletes(background)
			w.step(time.Second)
		},
	}
}

// fatesOfMarks are what happens to the marks of a Job's mirrors, and to those of other Jobs.
func fatesOfMarks() map[string]func(*world) {
	ofMirrors := func(change func(*batchv1.Job)) func(*world) {
		return func(w *world) {
			for _, v := range w.registered() {
				if m := v.api.jobs[jobKey]; m != nil && mirror.HubUID(m) != "" {
					v.api.change(jobKey, change)
				}
			}
		}
	}
	other := func(worker, name string, changes ...func(*batchv1.Job)) func(*world) {
		return func(w *world) {
			w.worker(worker).has(aJob(name, append(changes, suspended(true), func(job *batchv1.Job) {
				job.Spec.ManagedBy = ptr.To("example.org/else")
			})...))
		}
	}
	marked := func(hubUID string) func(*batchv1.Job) {
		return func(job *batchv1.Job) {
			job.Labels = map[string]string{v1alpha1.LabelOrigin: "hub-1"}
			annotated(v1alpha1.AnnotationHubUID, hubUID)(job)
		}
	}
	otherOrigin := func(job *batchv1.Job) {
		marked("hub-1")(job)
		job.Labels[v1alpha1.LabelOrigin] = "hub-2"
	}
	return map[string]func(*world){
		"nothing":                               func(*world) {},
		"the label is removed":                  ofMirrors(func(m *batchv1.Job) { delete(m.Labels, v1alpha1.LabelOrigin) }),
		"the annotation is removed":             ofMirrors(func(m *batchv1.Job) { delete(m.Annotations, v1alpha1.AnnotationHubUID) }),
		"all marks are removed":                 ofMirrors(func(m *batchv1.Job) { m.Labels, m.Annotations = nil, nil }),
		"a second one has its marks":            other("c", "train", marked("hub-1")),
		"one with its marks has another name":   other("a", "copy", marked("hub-1")),
		"one of an earlier Job has its name":    other("c", "train", marked("hub-0")),
		"a foreign Job has its name":            other("c", "train"),
		"one of another hub's has its name":     other("c", "train", otherOrigin),
		"one with the label alone has its name": other("c", "train", func(j *batchv1.Job) { j.Labels = map[string]string{v1alpha1.LabelOrigin: "hub-1"} }),
	}
}

// Marks tell which hub Job a Job in a worker stands for, and anybody there may remove or copy them.
// Whatever happens to them, and whenever: the hub Job runs once, no foreign Job is touched, and
// nothing of ours is left.
func TestIdentityOverALife(t *testing.T) {
	for name, happens := range fatesOfMarks() {
		for when, stage := range stagesOfALife() {
			for _, restarts := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, and a manager sees it: %v", name, when, !restarts), func(t *testing.T) {
					w := newWorld(t)
					if restarts { // a policy's
						w.worker("a").api.ttl = ptr.To[int32](3600)
					}
					w.addWorker("c", 8).connect()
					if stage(w); w.hub.jobs[jobKey] != nil {
						accounted(w)
					}
					happens(w)
					if restarts {
						w.start()
					}
					w.endsOnce()
				})
			}
		}
	}
}

// endsOnce has the Job run to its end, unless it's being deleted, and deletes it.
func (w *world) endsOnce() {
	w.Helper()
	if w.hub.jobs[jobKey] == nil {
		w.submits(aJob("train"))
	}
	foreign := map[*fakeWorker]*batchv1.Job{}
	for _, v := range w.registered() {
		if m := v.api.jobs[jobKey]; m != nil && ptr.Deref(m.Spec.ManagedBy, "") == "example.org/else" &&
			(m.Labels[v1alpha1.LabelOrigin] != "hub-1" || mirror.HubUID(m) == "") {
			foreign[v] = m.DeepCopy()
		}
	}
	w.step(10 * time.Second)
	w.resumes()
	w.worker("a").isBack()
	for _, v := range w.registered() {
		if m := v.api.jobs[jobKey]; m != nil && len(m.Finalizers) > 0 {
			v.api.change(jobKey, func(m *batchv1.Job) { m.Finalizers = nil })
		}
	}
	for range 5 {
		w.step(time.Minute)
		for _, v := range w.registered() {
			if m := v.api.jobs[jobKey]; m != nil && m.Status.Active > 0 {
				v.completes(4 - m.Status.Succeeded)
			}
		}
	}
	w.step(time.Minute)
	if job := w.hub.jobs[jobKey]; job != nil {
		if !mirror.Finished(job) || job.Status.Succeeded != 4 {
			w.fail("it hasn't ended:\n%s", w.state())
		}
		w.deletes(background)
		w.step(5 * time.Minute)
	}
	for _, v := range w.registered() {
		for key, m := range v.api.jobs {
			was, is := foreign[v]
			if !is || was.UID != m.UID || was.Generation != m.Generation || len(was.Labels) != len(m.Labels) || len(was.Annotations) != len(m.Annotations) {
				w.fail("%s is left, or changed, in worker %s:\n%s", key, v.Name(), w.state())
			}
		}
		if _, is := foreign[v]; is && v.api.jobs[jobKey] == nil {
			w.fail("the foreign Job is gone")
		}
	}
	if w.hub.jobs[jobKey] != nil {
		w.fail("it's still there:\n%s", w.state())
	}
}
