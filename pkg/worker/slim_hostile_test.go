package worker

import (
	"fmt"
	"runtime"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// Of Jobs of which no Pods are to be made, and of the Pods of one large template, little is held.
func TestLargeObjectsOfATenantTakeLittle(t *testing.T) {
	const many, objects = 20_000, 20
	sidecars := make([]corev1.Container, many)
	var finalizers []string
	labels := map[string]string{}
	for i := range many {
		sidecars[i] = corev1.Container{Name: fmt.Sprint(i), RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}
		finalizers = append(finalizers, fmt.Sprint("a/", i))
		labels[fmt.Sprint(i)] = ""
	}
	large := func(j *batchv1.Job) { j.Spec.Template.Spec.InitContainers = sidecars }
	for name, make := range map[string]func() any{
		"a Job of another controller": func() any {
			return slimJob(t, aJob(large, func(j *batchv1.Job) { j.Spec.ManagedBy = ptr.To("example.com/other") }).DeepCopy(), DefaultOptions())
		},
		"a finished Job": func() any {
			return slimJob(t, aJob(large, func(j *batchv1.Job) {
				j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
			}).DeepCopy(), DefaultOptions())
		},
		"a Pod": func() any {
			return slimmed(t, aPod("p", func(p *corev1.Pod) {
				p.Labels, p.Spec.InitContainers = labels, sidecars
				p.Finalizers = append(p.Finalizers, finalizers...)
			}).DeepCopy(), DefaultOptions())
		},
	} {
		before := liveBytes()
		held := []any{}
		for range objects {
			held = append(held, make())
		}
		if each := (liveBytes() - before) / objects; each > 16<<10 {
			t.Errorf("%s takes %d KiB", name, each>>10)
		}
		runtime.KeepAlive(held)
	}
}

// A Job whose Pods have too many labels to be held runs as any other, also with a selector of its
// own. It adopts no such Pod.
func TestPodsOfVeryManyLabels(t *testing.T) {
	many := map[string]string{"job": "job-uid"}
	for i := range 1000 {
		many[fmt.Sprint(i)] = ""
	}
	c := newCluster(t, Options{}, aJob(func(j *batchv1.Job) { j.Spec.Template.Labels = many }),
		aPod("bare", func(p *corev1.Pod) { p.OwnerReferences, p.Labels = nil, many }))
	for range 3 {
		c.mustSync()
		for _, p := range c.pods() {
			if p.Name != "bare" && p.Status.Phase != corev1.PodSucceeded {
				c.end(&p, 0)
			}
		}
	}
	c.mustSync()
	if c.count("create") != 3 || finished(c.job()) != batchv1.JobComplete {
		t.Errorf("%d Pods created, status %+v", c.count("create"), c.job().Status)
	}
	for _, p := range c.pods() {
		if p.Name == "bare" && len(p.OwnerReferences) > 0 {
			t.Error("the bare Pod was adopted")
		}
	}
}
