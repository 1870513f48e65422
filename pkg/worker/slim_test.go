package worker

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// What the tests of this package read from the cache is slim, too; this is about what's left out.
func TestSlimPod(t *testing.T) {
	large := func(p *corev1.Pod) {
		p.Annotations = map[string]string{"example.com/notes": "long", batchv1.JobCompletionIndexAnnotation: "3"}
		p.Spec.NodeName = "node"
		p.Spec.Containers = []corev1.Container{{Name: "main", Image: "image", Env: []corev1.EnvVar{{Name: "A", Value: "b"}}}}
		p.Status.HostIP = "10.0.0.1"
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Message: "long"}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", RestartCount: 2, ImageID: "sha256:0"}}
	}
	by := func(kind string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			owner := metav1.ObjectMeta{Name: "owner", UID: "owner-uid"}
			p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&owner, batchv1.SchemeGroupVersion.WithKind(kind))}
		}
	}
	ours := func(p *corev1.Pod) {
		p.Annotations = map[string]string{batchv1.JobCompletionIndexAnnotation: "3"}
		p.Spec.NodeName = "node"
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", RestartCount: 2}}
	}
	for name, row := range map[string]struct{ pod, want *corev1.Pod }{
		"of a Job":                            {aPod("a", large), aPod("a", ours)},
		"of nobody":                           {aPod("a", large, func(p *corev1.Pod) { p.OwnerReferences = nil }), aPod("a", ours, func(p *corev1.Pod) { p.OwnerReferences = nil })},
		"of another kind's, with a finalizer": {aPod("a", large, by("Other")), aPod("a", by("Other"), func(p *corev1.Pod) { p.Labels, p.Status = nil, corev1.PodStatus{} })},
		"of a Job, slim already":              {aPod("a", ours), aPod("a", ours)},
	} {
		if diff := cmp.Diff(row.want, slimmed(t, row.pod)); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
	others, err := slimPod(aPod("a", large, by("Other"), func(p *corev1.Pod) { p.Finalizers = nil }))
	want := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "a"}}
	if diff := cmp.Diff(want, others); err != nil || diff != "" {
		t.Errorf("of another kind's: %v, -want +got\n%s", err, diff)
	}
	if again, err := slimPod(others); err != nil || again != others {
		t.Errorf("slim already: %v, %v", again, err)
	}
	gone := cache.DeletedFinalStateUnknown{Key: "ns/a"}
	if got, err := slimPod(gone); got != gone || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

// A finished Job starts no Pods.
func TestSlimJob(t *testing.T) {
	end := func(j *batchv1.Job) {
		j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	}
	fields := func(j *batchv1.Job) { j.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}} }
	for name, row := range map[string]struct{ job, want *batchv1.Job }{
		"that runs": {aJob(fields), aJob()},
		"finished":  {aJob(fields, end), aJob(end, func(j *batchv1.Job) { j.Spec.Template = corev1.PodTemplateSpec{} })},
	} {
		got, err := slimJob(row.job)
		if diff := cmp.Diff(row.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v, -want +got\n%s", name, err, diff)
		}
	}
	gone := cache.DeletedFinalStateUnknown{Key: "ns/a"}
	if got, err := slimJob(gone); got != gone || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}
