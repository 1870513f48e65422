package checker

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/chaos/schedule"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// show shows a Pod of a worker on the hub.
func (w *world) show(e Event, changes ...func(*corev1.Pod)) Event {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: e.Pod.Name, Labels: map[string]string{batchv1.JobNameLabel: "job"},
		Annotations:     map[string]string{v1alpha1.AnnotationCluster: e.Where, v1alpha1.AnnotationPodUID: string(e.Pod.UID)},
		OwnerReferences: []metav1.OwnerReference{{UID: "hub-job", Controller: ptr.To(true)}},
	}, Status: corev1.PodStatus{Phase: e.Pod.Status.Phase}}
	for _, change := range changes {
		change(p)
	}
	is := Event{Where: schedule.Hub, Pod: p}
	w.see(is)
	return is
}

func TestShown(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*world, Event)
		want []Rule
	}{
		"as it is":       {func(w *world, e Event) { w.show(e) }, nil},
		"not at all":     {func(*world, Event) {}, []Rule{Shown}},
		"after its Job":  {func(w *world, e Event) { w.show(e); w.checker.EndOfRun(); w.hubGone() }, []Rule{Shown}},
		"after its end":  {func(w *world, e Event) { w.show(e); w.succeed(e) }, []Rule{Shown}},
		"after it went":  {func(w *world, e Event) { w.show(e); w.stop(e) }, []Rule{Shown}},
		"ended, removed": {func(w *world, e Event) { w.succeed(e) }, nil},
		"elsewhere": {func(w *world, e Event) {
			w.show(e, func(p *corev1.Pod) { p.Annotations[v1alpha1.AnnotationCluster] = "open" })
		}, []Rule{Shown}},
		"wrong for a moment": {func(w *world, e Event) { w.listen(20 * time.Second); w.show(e) }, nil},
		"while a fault lasts": {func(w *world, e Event) {
			heal := w.fault("fenced", schedule.FreezeAPIServer)
			w.listen(40 * time.Second)
			heal()
			w.show(e)
		}, nil},
		"after a fault": {func(w *world, _ Event) {
			heal := w.fault("fenced", schedule.FreezeAPIServer)
			w.listen(40 * time.Second)
			heal()
		}, []Rule{Shown}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.namespace = "shown"
			w.place("fenced")
			c.do(w, w.run("fenced", 0))
			w.listen(40 * time.Second)
			w.expect(c.want...)
		})
	}
}

func TestNotShown(t *testing.T) {
	w := newWorld(t)
	w.place("fenced")
	w.run("fenced", 0)
	w.listen(40 * time.Second)
	w.expect()
}
