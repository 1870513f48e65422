package objectnames_test

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobferry/jobferry/pkg/util/objectnames"
)

func pod(change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{}
	p.Name, p.Namespace, p.UID = "pi-0-x2x7k", "team", "0b5a0c3e-8a0b-4f6e-9d55-ef0d5dcd2a52"
	p.Labels = map[string]string{"batch.kubernetes.io/job-name": "pi"}
	p.Annotations = map[string]string{"jobferry.dev/cluster": "west"}
	p.Spec.NodeName = "ip-10-0-0-1.ec2.internal"
	p.Spec.Containers = []corev1.Container{{Name: "main"}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main"}}
	change(p)
	return p
}

// placed gives a Pod affinity to nodes by a key, and to Pods.
func placed(p *corev1.Pod, key, value string) {
	p.Spec.NodeSelector, p.Spec.Tolerations = map[string]string{"zone": "a"}, []corev1.Toleration{{Operator: corev1.TolerationOpExists}, {Key: "gpu", Value: "a"}}
	p.Spec.Affinity = &corev1.Affinity{
		NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}},
		}}}},
		PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "zone"}}},
		PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, Namespaces: []string{"team"}, LabelSelector: &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{value}}},
			},
		}}},
	}
}

func guard(p *corev1.Pod) *corev1.PodAffinityTerm {
	return &p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
}

func TestValid(t *testing.T) {
	for name, object := range map[string]metav1.Object{
		"Pod":                pod(func(*corev1.Pod) {}),
		"annotation":         pod(func(p *corev1.Pod) { p.Annotations["Example.COM/Key"] = "any\ntext" }),
		"Job":                &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "pi"}},
		"node":               &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "ip-10-0-0-1.ec2.internal"}},
		"driver of CSI":      &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "CSI.Example.com"}},
		"Pod that is placed": pod(func(p *corev1.Pod) { placed(p, "example.com/key", "any\ntext") }),
		"tainted node":       &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "gpu", Value: "a"}, {Key: "b"}}}},
		"LimitRange": &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "l"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
			{Type: corev1.LimitTypeContainer, Default: corev1.ResourceList{"cpu": {}}, Min: corev1.ResourceList{"example.com/gpu": {}}},
		}}},
		"quota": &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Status: corev1.ResourceQuotaStatus{Hard: corev1.ResourceList{
			"requests.example.com/gpu": {}, "count/jobs.batch": {}, "gold.storageclass.storage.k8s.io/requests.storage": {},
		}}},
		"RuntimeClass": &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{"cpu": {}}},
			Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"a": "b"}, Tolerations: []corev1.Toleration{{Key: "a", Operator: "Exists"}}}},
		"no label value": &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"node-role.kubernetes.io/worker": ""}}},
	} {
		if !objectnames.Valid(object) {
			t.Errorf("%s: refused", name)
		}
	}
	long := strings.Repeat("a", 64)
	const shell, escape = "$(touch${IFS}file)", "pi-\x1b[2J"
	for name, change := range map[string]func(*corev1.Pod){
		"name":                 func(p *corev1.Pod) { p.Name = shell },
		"no name":              func(p *corev1.Pod) { p.Name = "" },
		"name that is escaped": func(p *corev1.Pod) { p.Name = escape },
		"namespace":            func(p *corev1.Pod) { p.Namespace = "a/b" },
		"UID":                  func(p *corev1.Pod) { p.UID = shell },
		"long UID":             func(p *corev1.Pod) { p.UID = types.UID(strings.Repeat("a", objectnames.MaxUID+1)) },
		"label":                func(p *corev1.Pod) { p.Labels[escape] = "x" },
		"label value":          func(p *corev1.Pod) { p.Labels["app"] = shell },
		"annotation":           func(p *corev1.Pod) { p.Annotations[shell] = "x" },
		"container":            func(p *corev1.Pod) { p.Spec.Containers[0].Name = shell },
		"init container":       func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: escape}} },
		"ephemeral container": func(p *corev1.Pod) {
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{}}
		},
		"status":              func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Name = "a b" },
		"node":                func(p *corev1.Pod) { p.Spec.NodeName = shell },
		"node selector":       func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{long: "x"} },
		"its value":           func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"x": long} },
		"toleration":          func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Key: long}} },
		"value of toleration": func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Key: "x", Value: long}} },
		"affinity":            func(p *corev1.Pod) { placed(p, long, "x") },
		"topology":            func(p *corev1.Pod) { placed(p, "x", "x"); guard(p).TopologyKey = long },
		"namespace of others": func(p *corev1.Pod) { placed(p, "x", "x"); guard(p).Namespaces = []string{long} },
		"selector of others":  func(p *corev1.Pod) { placed(p, "x", "x"); guard(p).LabelSelector.MatchExpressions[0].Key = long },
		"selector of namespaces": func(p *corev1.Pod) {
			placed(p, "x", "x")
			guard(p).NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"x": long}}
		},
	} {
		if objectnames.Valid(pod(change)) {
			t.Errorf("%s: accepted", name)
		}
	}
	meta, none := metav1.ObjectMeta{Name: "x"}, corev1.ResourceList{corev1.ResourceName(long): {}}
	for name, object := range map[string]metav1.Object{
		"limit":                 &corev1.LimitRange{ObjectMeta: meta, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Max: none}}}},
		"quota":                 &corev1.ResourceQuota{ObjectMeta: meta, Status: corev1.ResourceQuotaStatus{Hard: none}},
		"overhead":              &nodev1.RuntimeClass{ObjectMeta: meta, Overhead: &nodev1.Overhead{PodFixed: none}},
		"selector of a class":   &nodev1.RuntimeClass{ObjectMeta: meta, Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{long: ""}}},
		"toleration of a class": &nodev1.RuntimeClass{ObjectMeta: meta, Scheduling: &nodev1.Scheduling{Tolerations: []corev1.Toleration{{Key: long}}}},
	} {
		if objectnames.Valid(object) {
			t.Errorf("%s: accepted", name)
		}
	}
	if objectnames.Valid(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: long}}}}) {
		t.Error("taint: accepted")
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "pi"}}
	job.Spec.Template.Labels = map[string]string{shell: "x"}
	if objectnames.Valid(job) {
		t.Error("label of a template: accepted")
	}
}

// FuzzValid compares with Kubernetes' own functions.
func FuzzValid(f *testing.F) {
	for _, seed := range []string{
		"", "a", "-a", "a-", "a.b", "a..b", ".a", "a.", "a-.b", "a.-b", "a--b", "A.b", "a_b", "a/b", "a/", "/a", "a/b/c", "A/b", "a/B_c", "9", "a\n", "é", "a b",
		"$(touch${IFS}file)", "pi-\x1b[2J", strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a.", 126) + "a", strings.Repeat("a", 254),
		strings.Repeat("a", 253) + "/" + strings.Repeat("b", 63), strings.Repeat("a", 254) + "/b", "a/" + strings.Repeat("b", 64),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		of := func(change func(*metav1.ObjectMeta)) metav1.Object {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
			change(&p.ObjectMeta)
			return p
		}
		for _, row := range []struct {
			what     string
			object   metav1.Object
			problems []string
		}{
			{"name", of(func(m *metav1.ObjectMeta) { m.Name = text }), validation.IsDNS1123Subdomain(text)},
			{"key", of(func(m *metav1.ObjectMeta) { m.Labels = map[string]string{text: ""} }), validation.IsQualifiedName(text)},
			{"value", of(func(m *metav1.ObjectMeta) { m.Labels = map[string]string{"k": text} }), validation.IsValidLabelValue(text)},
			{
				"annotation", of(func(m *metav1.ObjectMeta) { m.Annotations = map[string]string{text: ""} }),
				validation.IsQualifiedName(strings.ToLower(text)),
			},
			{"container", pod(func(p *corev1.Pod) { p.Spec.Containers[0].Name = text }), validation.IsDNS1123Label(text)},
		} {
			if got := objectnames.Valid(row.object); got != (len(row.problems) == 0) {
				t.Errorf("%s %q: %t, and Kubernetes says %q", row.what, text, got, row.problems)
			}
		}
	})
}

// BenchmarkValid checks a common Pod, and compares with Kubernetes' own functions for its labels.
func BenchmarkValid(b *testing.B) {
	common := pod(func(p *corev1.Pod) {
		for i := range 10 {
			p.Labels[fmt.Sprintf("example.com/label-%d", i)] = "0b5a0c3e-8a0b-4f6e-9d55-ef0d5dcd2a52"
		}
	})
	b.Run("scanned", func(b *testing.B) {
		for b.Loop() {
			if !objectnames.Valid(common) {
				b.Fatal("refused")
			}
		}
	})
	b.Run("by Kubernetes", func(b *testing.B) {
		for b.Loop() {
			if problems := metav1validation.ValidateLabels(common.Labels, field.NewPath("labels")); len(problems) > 0 {
				b.Fatal(problems)
			}
		}
	})
}

func TestIsPlain(t *testing.T) {
	for text, want := range map[string]bool{
		"pi-0-x2x7k": true, "kube-system/pi.a_b:1": true,
		"": false, "a b": false, "a\n": false, "$x": false, "`x`": false, "a;b": false, "é": false, "a\x1b": false,
	} {
		if objectnames.IsPlain(text) != want {
			t.Errorf("%q: not %v", text, want)
		}
	}
}
