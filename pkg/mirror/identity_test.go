package mirror

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/mirrortest"
)

func TestOwns(t *testing.T) {
	mine := func() *mirrortest.Job {
		return mirrortest.New("job").Label(v1alpha1.LabelOrigin, "hub-a").Annotation(v1alpha1.AnnotationHubUID, "uid-1")
	}
	for name, row := range map[string]struct {
		origin v1alpha1.Origin
		job    *mirrortest.Job
		want   Ownership
	}{
		"mine":                         {"hub-a", mine(), Ours},
		"deleted and created again":    {"hub-a", mine().Annotation(v1alpha1.AnnotationHubUID, "uid-0"), OtherHubJob},
		"another hub's":                {"hub-b", mine(), Foreign},
		"a user's":                     {"hub-a", mirrortest.New("job"), Foreign},
		"a user's with our label":      {"hub-a", mirrortest.New("job").Label(v1alpha1.LabelOrigin, "hub-a"), Foreign},
		"a user's with our annotation": {"hub-a", mirrortest.New("job").Annotation(v1alpha1.AnnotationHubUID, "uid-1"), Foreign},
		"an origin that isn't known":   {"", mirrortest.New("job").Annotation(v1alpha1.AnnotationHubUID, "uid-1"), Foreign},
		"another hub's, equal hub UID": {"hub-b", mine().Label(v1alpha1.LabelOrigin, "hub-a"), Foreign},
	} {
		if got := Owns(row.origin, "uid-1", row.job.Obj()); got != row.want {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

func TestIsUnmarked(t *testing.T) {
	mirror := func(change func(*batchv1.Job)) *batchv1.Job {
		hub := mirrortest.New("job").Obj()
		hub.Spec.Template.Labels = map[string]string{batchv1.ControllerUidLabel: "uid-1"}
		m := Project(hub, Target{Origin: "hub-a"})
		m.UID = "mirror-1"
		SelectPods(hub, m, "id-1")
		m.Labels, m.Annotations = nil, nil
		if change != nil {
			change(m)
		}
		return m
	}
	known := []types.UID{"mirror-1"}
	for name, row := range map[string]struct {
		job   *batchv1.Job
		known []types.UID
		want  bool
	}{
		"its Pods say so": {job: mirror(nil), want: true},
		"its UID says so": {job: mirror(func(m *batchv1.Job) { m.Spec = batchv1.JobSpec{} }), known: known, want: true},
		"nothing does":    {job: mirror(func(m *batchv1.Job) { m.Spec = batchv1.JobSpec{} })},
		"its Pods are another's": {job: mirror(func(m *batchv1.Job) {
			m.Spec.Template.Labels[batchv1.ControllerUidLabel] = "uid-2"
		})},
		"its selector is another": {job: mirror(func(m *batchv1.Job) {
			m.Spec.Selector.MatchLabels = map[string]string{"app": "a"}
		})},
		"another hub's": {job: mirror(func(m *batchv1.Job) {
			m.Labels = map[string]string{v1alpha1.LabelOrigin: "hub-b"}
		}), known: known},
		"another Job's": {job: mirror(func(m *batchv1.Job) {
			m.Annotations = map[string]string{v1alpha1.AnnotationHubUID: "uid-2"}
		}), known: known},
	} {
		if got := IsUnmarked("hub-a", "uid-1", row.job, row.known); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestManaged(t *testing.T) {
	if Managed(mirrortest.New("job").Obj()) || Managed(mirrortest.New("job").ManagedBy(v1alpha1.ManagedByWorker).Obj()) {
		t.Error("a Job of someone else is claimed")
	}
	if !Managed(mirrortest.New("job").ManagedBy(v1alpha1.ManagedByDispatcher).Obj()) {
		t.Error("our Job isn't claimed")
	}
}

func TestSelector(t *testing.T) {
	m := Project(mirrortest.New("job").Obj(), Target{Origin: "hub-a"})
	if !v1alpha1.Origin("hub-a").Selector().Matches(labels.Set(m.Labels)) || v1alpha1.Origin("hub-b").Selector().Matches(labels.Set(m.Labels)) {
		t.Errorf("labels %v", m.Labels)
	}
}
