package pods

import (
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unique"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/objectnames"
)

func cpu(quantity string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(quantity)}
}

func testJob() *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "job", UID: "job"},
		Spec: batchv1.JobSpec{
			CompletionMode: ptr.To(batchv1.IndexedCompletion),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels:      map[string]string{batchv1.ControllerUidLabel: "job", batchv1.JobNameLabel: "job", "app": "a"},
					Annotations: map[string]string{annotationDefaultContainer: "main", "secret": "x"},
				},
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: ptr.To[int64](7), HostNetwork: true, ServiceAccountName: "robot", PriorityClassName: "high",
					RuntimeClassName: ptr.To("gvisor"), Volumes: []corev1.Volume{{Name: "v"}}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "s"}},
					InitContainers: []corev1.Container{{Name: "proxy", Image: "p", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}},
					Containers: []corev1.Container{{
						Name: "main", Image: "i", Command: []string{"c"}, Args: []string{"a"}, TTY: true, Stdin: true,
						Env: []corev1.EnvVar{{Name: "E", Value: "x"}}, EnvFrom: []corev1.EnvFromSource{{}}, VolumeMounts: []corev1.VolumeMount{{Name: "v"}},
						Ports:           []corev1.ContainerPort{{Name: "http", ContainerPort: 80, HostPort: 80, HostIP: "1.2.3.4", Protocol: corev1.ProtocolTCP}},
						Resources:       corev1.ResourceRequirements{Requests: cpu("1"), Limits: cpu("2"), Claims: []corev1.ResourceClaim{{Name: "c"}}},
						SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)}, LivenessProbe: &corev1.Probe{}, Lifecycle: &corev1.Lifecycle{},
					}},
				},
			},
		},
	}
}

func TestNewShadow(t *testing.T) {
	from := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{batchv1.JobCompletionIndexAnnotation: "3", batchv1.JobIndexFailureCountAnnotation: "2"}}}
	pod := newShadow(modelOf(testJob()), types.NamespacedName{Namespace: "team", Name: "job-3-x"}, "uid", "w1", from)
	wantLabels := map[string]string{
		batchv1.ControllerUidLabel: "job", batchv1.JobNameLabel: "job", "app": "a", v1alpha1.LabelShadow: "true", batchv1.JobCompletionIndexAnnotation: "3",
	}
	wantAnnotations := map[string]string{
		v1alpha1.AnnotationCluster: "w1", v1alpha1.AnnotationPodUID: "uid", annotationDefaultContainer: "main",
		batchv1.JobCompletionIndexAnnotation: "3", batchv1.JobIndexFailureCountAnnotation: "2",
	}
	if d := cmp.Diff(wantLabels, pod.Labels); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(wantAnnotations, pod.Annotations); d != "" {
		t.Error(d)
	}
	if owner := metav1.GetControllerOf(pod); owner == nil || owner.UID != "job" {
		t.Errorf("its controller is %+v", owner)
	}
	restricted := &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	want := corev1.PodSpec{
		NodeName: "jobferry-w1", Hostname: "job-3", RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: ptr.To[int64](7),
		Tolerations:                  []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false),
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: "RuntimeDefault"}},
		InitContainers:  []corev1.Container{{Name: "proxy", Image: "p", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways), SecurityContext: restricted}},
		Containers: []corev1.Container{{
			Name: "main", Image: "i", Command: []string{"c"}, Args: []string{"a"}, TTY: true, Stdin: true, SecurityContext: restricted,
			Ports:     []corev1.ContainerPort{{Name: "http", ContainerPort: 80, Protocol: corev1.ProtocolTCP}},
			Resources: corev1.ResourceRequirements{Requests: cpu("1"), Limits: cpu("2")},
		}},
	}
	if d := cmp.Diff(want, pod.Spec); d != "" {
		t.Error(d)
	}
	long := testJob()
	long.Spec.Template.Spec.Containers[0].Args = []string{strings.Repeat("x", maxCommand)}
	if c := newShadow(modelOf(long), types.NamespacedName{}, "", "w1", from).Spec.Containers[0]; c.Command != nil || c.Args != nil {
		t.Error("a long command is in each Pod")
	}
	plain := testJob()
	plain.Spec.CompletionMode = nil
	if p := newShadow(modelOf(plain), types.NamespacedName{}, "", "w1", from); p.Labels[batchv1.JobCompletionIndexAnnotation] != "" || p.Spec.Hostname != "" {
		t.Error("the worker gives a Pod an index that its Job hasn't")
	}
	plain.Spec.Template.Spec.Hostname = "here"
	if p := newShadow(modelOf(plain), types.NamespacedName{}, "", "w1", from); p.Spec.Hostname != "here" {
		t.Errorf("the hostname of the template is shown as %q", p.Spec.Hostname)
	}
	named := testJob()
	named.Name = strings.Repeat("x", validation.DNS1123LabelMaxLength)
	if p := newShadow(modelOf(named), types.NamespacedName{}, "", "w1", from); p.Spec.Hostname != "" {
		t.Errorf("hostname %q: the hub refuses it", p.Spec.Hostname)
	}
}

// What shows a Pod with any UID that the feed takes in is known for a shadow: another would neither
// be counted nor removed.
func TestShadowsOfLongUIDs(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "p", UID: types.UID(strings.Repeat("u", 100))}}
	for ; len(pod.UID) > 0 && !objectnames.Valid(pod); pod.UID = pod.UID[1:] {
	}
	is := newShadow(modelOf(testJob()), types.NamespacedName{Namespace: "team", Name: "p"}, pod.UID, "w1", &corev1.Pod{})
	if s := shadowOf(is, "w1"); !s.isShadow() {
		t.Errorf("a Pod with a UID of %d bytes has no shadow", len(pod.UID))
	}
}

func TestShadowOf(t *testing.T) {
	pod := newShadow(modelOf(testJob()), types.NamespacedName{Namespace: "team", Name: "p"}, "uid", "w1", &corev1.Pod{})
	pod.UID, pod.ResourceVersion = "shadow", "7"
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	s := shadowOf(pod, "w1")
	if !s.isShadow() || s.pod != "uid" || s.job != "job" || s.jobName != "job" || !s.disrupted || !s.ready || !s.hasContainer("proxy") || !s.hasContainer("main") || s.hasContainer("other") || s.GetObjectMeta().GetResourceVersion() != "7" {
		t.Errorf("read %+v", s)
	}
	pod.Annotations[annotationDigest] = strings.Repeat("d", 1<<10)
	pod.OwnerReferences[0].Name = strings.Repeat("n", 1<<10)
	pod.Spec.Containers = make([]corev1.Container, 10_000)
	if s := shadowOf(pod, "w1"); s.digest != "" || s.jobName != "" || len(s.containers.Value()) > 4*maxContainers {
		t.Errorf("of somebody's texts, %+v is held", s)
	}
	pod.Annotations[v1alpha1.AnnotationPodUID] = strings.Repeat("u", 1<<10)
	if s := shadowOf(pod, "w1"); s.isShadow() || s.containers != (unique.Handle[string]{}) {
		t.Errorf("of somebody's Pod, %+v is held", s)
	}
	delete(pod.Labels, v1alpha1.LabelShadow)
	if shadowOf(pod, "w1").isShadow() {
		t.Error("a Pod without the label is a shadow")
	}
}

func TestStatusPatch(t *testing.T) {
	to := shadowOf(newShadow(modelOf(testJob()), types.NamespacedName{Namespace: "team", Name: "p"}, "uid", "w1", &corev1.Pod{}), "w1")
	patch, err := statusPatch(to, "d1", &corev1.Pod{Status: corev1.PodStatus{
		Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "main"}, {Name: "injected"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Metadata struct{ Annotations map[string]string }
		Status   map[string]any
	}
	if err := json.Unmarshal(patch, &got); err != nil {
		t.Fatal(err)
	}
	reason, has := got.Status["reason"]
	if containers, _ := got.Status["containerStatuses"].([]any); len(containers) != 1 || !has || reason != nil || got.Metadata.Annotations[annotationDigest] != "d1" {
		t.Errorf("patched %s", patch)
	}
	if condition := got.Status["conditions"].([]any)[0].(map[string]any); !slices.Contains([]any{nil}, condition["message"]) || len(condition) != 5 {
		t.Errorf("patched %s", patch)
	}
}

// With a report, of which package report has the size, a Pod takes 1 KB.
func TestMemoryOfAShadow(t *testing.T) {
	const pods = 10_000
	var before, after runtime.MemStats
	held := make([]*shadow, 0, pods)
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range pods {
		pod := newShadow(modelOf(testJob()), types.NamespacedName{Namespace: "team", Name: strings.Clone("a-job-of-usual-name-00001-x7k2p")}, types.UID(strings.Repeat("u", 36)), "w1", &corev1.Pod{})
		pod.UID, pod.ResourceVersion = types.UID(strings.Repeat("v", 36)), strings.Repeat("1", 8)
		held = append(held, shadowOf(pod, "w1"))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := (after.HeapAlloc - before.HeapAlloc) / pods
	t.Logf("%d bytes for each shadow", each)
	if each > 400 {
		t.Errorf("a shadow takes %d bytes", each)
	}
	runtime.KeepAlive(held)
}

// Of a Job with very many containers, no model is made, and of its commands little is shown.
func TestModelOf(t *testing.T) {
	job := testJob()
	job.Spec.Template.Spec.Containers[0].Args = []string{strings.Repeat("a", maxCommand)}
	model := modelOf(job)
	if model == nil || model.Spec.Template.Spec.Containers[0].Args != nil || model.Spec.Template.Spec.Containers[0].Env != nil {
		t.Errorf("made %+v", model)
	}
	for _, many := range []int{500, 10_000} { // 500 take some KiB as bytes, and 64 KiB many times as containers
		job.Spec.Template.Spec.Containers = make([]corev1.Container, many)
		if modelOf(job) != nil {
			t.Errorf("with %d containers, it has a model", many)
		}
	}
}
