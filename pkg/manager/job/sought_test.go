package job

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

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
			w.triggers.seekUnmarked()
			w.step(10 * time.Minute)
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
