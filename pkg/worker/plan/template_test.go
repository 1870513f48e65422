package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

var owner = []metav1.OwnerReference{{
	APIVersion: "batch/v1", Kind: "Job", Name: "job", UID: "job-uid",
	Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
}}

func TestNewPod(t *testing.T) {
	job := aJob(func(j *batchv1.Job) {
		j.Spec.Template.Annotations = map[string]string{"a": "1"}
		j.Spec.Template.Finalizers = []string{"user/own"}
	})
	got := Compute(snap(job, 0), testOptions).Create[0]()
	want := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", GenerateName: "job-", OwnerReferences: owner,
			Labels: map[string]string{"job": "job-uid"}, Annotations: map[string]string{"a": "1"},
			Finalizers: []string{"user/own", testOptions.TrackingFinalizer},
		},
		Spec: job.Spec.Template.Spec,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNewIndexedPod(t *testing.T) {
	job := aJob(sized(1, 8), indexed, func(j *batchv1.Job) {
		j.Status.CompletedIndexes = "0-6"
		spec := &j.Spec.Template.Spec
		spec.Hostname = "mine"
		spec.InitContainers = []corev1.Container{{Name: "init"}}
		spec.Containers = append(spec.Containers, corev1.Container{Name: "own", Env: []corev1.EnvVar{{Name: indexEnv, Value: "x"}}})
	})
	got := Compute(snap(job, 0), testOptions).Create[0]()
	env := []corev1.EnvVar{{Name: indexEnv, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
		FieldPath: "metadata.labels['batch.kubernetes.io/job-completion-index']",
	}}}}
	want := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", GenerateName: "job-7-", OwnerReferences: owner, Finalizers: []string{testOptions.TrackingFinalizer},
			Labels:      map[string]string{"job": "job-uid", "batch.kubernetes.io/job-completion-index": "7"},
			Annotations: map[string]string{"batch.kubernetes.io/job-completion-index": "7"},
		},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Hostname: "job-7",
			InitContainers: []corev1.Container{{Name: "init", Env: env}},
			Containers:     []corev1.Container{{Name: "main", Env: env}, {Name: "own", Env: []corev1.EnvVar{{Name: indexEnv, Value: "x"}}}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(job.Spec.Template.Labels) != 1 || job.Spec.Template.Spec.Containers[0].Env != nil {
		t.Error("the Job's own template was changed")
	}
}

func TestPodNamePrefix(t *testing.T) {
	long := strings.Repeat("x", 63)
	if got := indexedNamePrefix(long, "12"); got != long[:54]+"-12-" {
		t.Errorf("indexed prefix %q", got)
	}
	// With a manual selector, a Job's name may be as long as a Pod's. The API server cuts the prefix.
	job := aJob(func(j *batchv1.Job) { j.Name, j.Spec.ManualSelector = strings.Repeat("x", 253), ptr.To(true) })
	if got := Compute(snap(job, 0), testOptions).Create[0]().GenerateName; got != job.Name+"-" {
		t.Errorf("prefix %q", got)
	}
}

// The failures of an index travel from Pod to Pod.
func TestIndexFailureAnnotations(t *testing.T) {
	ignored := func(p *corev1.Pod) { p.Annotations[batchv1.JobIndexIgnoredFailureCountAnnotation] = "3" }
	damaged := func(p *corev1.Pod) { p.Annotations[batchv1.JobIndexFailureCountAnnotation] = "-2" }
	rules := policy(onExit(batchv1.PodFailurePolicyActionIgnore, 2))
	for _, row := range []struct {
		name                     string
		job                      *batchv1.Job
		failed                   []*corev1.Pod
		wantCounted, wantIgnored string
	}{
		{"the first Pod", aJob(indexLimit(9)), nil, "0", ""},
		{"after a failure", aJob(indexLimit(9)), []*corev1.Pod{aPod("a", index(0), failures(1), failed)}, "2", ""},
		{"after an ignored one", aJob(indexLimit(9), rules), []*corev1.Pod{aPod("a", index(0), failures(1), exited(2, 0))}, "1", "1"},
		{"ignored ones are kept", aJob(indexLimit(9), rules), []*corev1.Pod{aPod("a", index(0), failures(1), ignored, failed)}, "2", "3"},
		{"a damaged count is none", aJob(indexLimit(9)), []*corev1.Pod{aPod("a", index(0), damaged, failed)}, "1", ""},
		{"the Pod that failed last decides", aJob(indexLimit(9)), []*corev1.Pod{aPod("a", index(0), failures(4), failed), aPod("b", index(0), failures(1), failed)}, "5", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := Compute(snap(row.job, 9999, row.failed...), testOptions).Create[0]().Annotations
			if got[batchv1.JobIndexFailureCountAnnotation] != row.wantCounted || got[batchv1.JobIndexIgnoredFailureCountAnnotation] != row.wantIgnored {
				t.Errorf("annotations %v", got)
			}
		})
	}
}

// A failed Pod stays tracked until the next one of its index has its count.
func TestFailedPodAwaitsItsReplacement(t *testing.T) {
	dead := aPod("dead", index(0), failures(0), exited(1, 0))
	waiting := Compute(snap(aJob(sized(1, 2), indexLimit(3)), 1, dead), testOptions).Record(Result{})
	if len(waiting.Untrack) != 0 {
		t.Error("untracked before its replacement was there")
	}
	replaced := Compute(snap(aJob(sized(1, 2), indexLimit(3)), 30, dead, aPod("next", index(0), failures(1))), testOptions).Record(Result{})
	if len(replaced.Untrack) != 1 {
		t.Error("still tracked after its replacement was there")
	}
}
