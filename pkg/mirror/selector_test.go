package mirror

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/mirrortest"
)

func matches(t *testing.T, job *batchv1.Job, pod map[string]string) bool {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	return selector.Matches(labels.Set(pod))
}

// selected is a mirror as the manager creates it.
func selected(hub *batchv1.Job, id string) *batchv1.Job {
	m := Project(hub, aTarget)
	SelectPods(hub, m, id)
	return m
}

func TestSelectPods(t *testing.T) {
	hub := mirrortest.New("job").Do(func(j *batchv1.Job) {
		j.Spec.Template.Labels["app"] = "x"
		j.Spec.Template.Labels[v1alpha1.LabelMirrorID] = "another"
	}).Obj()
	before := hub.DeepCopy()
	first, second := selected(hub, "1"), selected(hub, "2")
	if diff := cmp.Diff(map[string]string{
		"app": "x", v1alpha1.LabelMirrorID: "1", "controller-uid": "uid-job", "job-name": "job",
		batchv1.ControllerUidLabel: "uid-job", batchv1.JobNameLabel: "job",
	}, first.Spec.Template.Labels); diff != "" {
		t.Error(diff)
	}
	for name, row := range map[string]struct {
		job  *batchv1.Job
		pods *batchv1.Job
		want bool
	}{
		"the hub Job finds the Pods":                       {hub, first, true},
		"the mirror finds its own":                         {first, first, true},
		"the mirror doesn't find those of an earlier one":  {second, first, false},
		"nor of the same Job, created again, of that name": {selected(mirrortest.New("job").Do(func(j *batchv1.Job) { j.UID = "b" }).Obj(), "3"), first, false},
	} {
		if got := matches(t, row.job, row.pods.Spec.Template.Labels); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if !ptr.Deref(first.Spec.ManualSelector, false) {
		t.Error("the worker's API server would replace the selector")
	}
	if diff := cmp.Diff(before, hub); diff != "" {
		t.Errorf("the hub Job was changed: %s", diff)
	}
}

// A user's own selector stays what it is.
func TestSelectPodsOfManualSelector(t *testing.T) {
	hub := mirrortest.New("job").Do(func(j *batchv1.Job) {
		j.Spec.ManualSelector = ptr.To(true)
		j.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}
		j.Spec.Template.Labels = map[string]string{"app": "x"}
	}).Obj()
	if diff := cmp.Diff(Project(hub, aTarget), selected(hub, "1")); diff != "" {
		t.Error(diff)
	}
}

// Neither a mirror's own labels nor those of an earlier release's mirror are drift, and both stay
// when the template changes. The record doesn't know of them: releases agree about it.
func TestSelectorLabelsDontDrift(t *testing.T) {
	hub := mirrortest.New("job").Obj()
	old := mirrorOf(hub, aTarget) // with the selector that the API server has generated
	stored := func() *batchv1.Job {
		m := selected(hub, "1")
		m.UID, m.ResourceVersion, m.Generation = "uid-mirror", "7", 1
		return m
	}
	if was, is := old.Annotations[v1alpha1.AnnotationProjected], stored().Annotations[v1alpha1.AnnotationProjected]; was != is {
		t.Errorf("record %s, in an earlier release %s", is, was)
	}
	for name, m := range map[string]*batchv1.Job{"own": stored(), "of an earlier release": old} {
		if act, is := Drift(hub, m, aTarget).(None); !is || len(act.Notes) > 0 {
			t.Errorf("%s: %+v", name, act)
		}
		suspended := mirrortest.From(hub).Suspend(true).Obj()
		zone("b")(suspended)
		suspended.Spec.Template.Labels["new"] = "y"
		halted(m)
		patch, is := Drift(suspended, m, aTarget).(Patch)
		if !is {
			t.Errorf("%s: no patch, but %+v", name, Drift(suspended, m, aTarget))
			continue
		}
		after := applyBytes(t, m, patch.Bytes())
		if !matches(t, m, after.Spec.Template.Labels) || after.Spec.Template.Labels["new"] != "y" {
			t.Errorf("%s: labels %v, selector %v", name, after.Spec.Template.Labels, m.Spec.Selector)
		}
	}
}
