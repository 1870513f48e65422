package worker

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/worker/plan"
)

// What the tests of this package read from the cache is slim, too; this is about what's left out.
func TestSlimPod(t *testing.T) {
	own := slimming{DefaultOptions()}
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
		if diff := cmp.Diff(row.want, slimmed(t, row.pod, DefaultOptions())); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
	others, err := own.pod(aPod("a", large, by("Other"), func(p *corev1.Pod) { p.Finalizers = nil }))
	want := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "a"}}
	if diff := cmp.Diff(want, others); err != nil || diff != "" {
		t.Errorf("of another kind's: %v, -want +got\n%s", err, diff)
	}
	// Owner references of any length are accepted.
	long := func(p *corev1.Pod) {
		by("Job")(p)
		p.OwnerReferences[0].Name = strings.Repeat("n", 1_300_000)
	}
	someones := aPod("a", func(p *corev1.Pod) {
		p.OwnerReferences, p.Labels, p.Status = []metav1.OwnerReference{{Controller: ptr.To(true)}}, nil, corev1.PodStatus{}
	})
	if diff := cmp.Diff(someones, slimmed(t, aPod("a", large, long), DefaultOptions())); diff != "" {
		t.Errorf("of a Job with a very long name, with a finalizer: -want +got\n%s", diff)
	}
	without, err := own.pod(aPod("a", large, long, func(p *corev1.Pod) { p.Finalizers = nil }))
	if diff := cmp.Diff(want, without); err != nil || diff != "" {
		t.Errorf("of a Job with a very long name: %v, -want +got\n%s", err, diff)
	}
	if values := indexPod(aPod("a", long)); len(values) > 0 {
		t.Errorf("it's indexed by %d bytes", len(values[0]))
	}
	if again, err := own.pod(others); err != nil || again != others {
		t.Errorf("slim already: %v, %v", again, err)
	}
	gone := cache.DeletedFinalStateUnknown{Key: "ns/a"}
	if got, err := own.pod(gone); got != gone || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

// A finished Job starts no Pods, nor does one of another controller.
func TestSlimJob(t *testing.T) {
	end := func(j *batchv1.Job) {
		j.Status.Conditions = []batchv1.JobCondition{
			{Type: "Other", Status: corev1.ConditionTrue},
			{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, Message: "long", LastTransitionTime: metav1.NewTime(noon)},
		}
	}
	meta := func(j *batchv1.Job) {
		j.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
		j.Labels = map[string]string{"a": "b", v1alpha1.LabelOrigin: "hub"}
		j.Annotations = map[string]string{"a": "b"}
		j.Spec.TTLSecondsAfterFinished = ptr.To[int32](5)
	}
	others := func(j *batchv1.Job) { j.Spec.ManagedBy = ptr.To("example.com/other") }
	little := func(edits ...func(*batchv1.Job)) *batchv1.Job {
		job := &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job", UID: "job-uid", Labels: map[string]string{v1alpha1.LabelOrigin: "hub"}},
			Spec:       batchv1.JobSpec{ManagedBy: aJob(edits...).Spec.ManagedBy, TTLSecondsAfterFinished: ptr.To[int32](5)},
		}
		if plan.Finished(aJob(edits...)) != nil {
			job.Status.Conditions = []batchv1.JobCondition{
				{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon)},
			}
		}
		return job
	}
	for name, row := range map[string]struct{ job, want *batchv1.Job }{
		"that runs":              {aJob(meta), aJob(meta, func(j *batchv1.Job) { j.ManagedFields = nil })},
		"finished":               {aJob(meta, end), little(end)},
		"of another's":           {aJob(meta, others), little(others)},
		"of another's, finished": {aJob(meta, others, end), little(others, end)},
		"of another's, slim":     {little(others, end), little(others, end)},
	} {
		if diff := cmp.Diff(row.want, slimJob(t, row.job, DefaultOptions(), Options{ManagedBy: []string{"example.com/third"}})); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
	gone := cache.DeletedFinalStateUnknown{Key: "ns/a"}
	if got, err := (slimming{}).job(gone); got != gone || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}
