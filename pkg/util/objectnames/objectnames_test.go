package objectnames_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

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

func TestCheckPod(t *testing.T) {
	if err := objectnames.CheckPod(pod(func(*corev1.Pod) {})); err != nil {
		t.Error(err)
	}
	const shell, escape = "$(touch${IFS}file)", "pi-\x1b[2J"
	for name, change := range map[string]func(*corev1.Pod){
		"name":                 func(p *corev1.Pod) { p.Name = shell },
		"no name":              func(p *corev1.Pod) { p.Name = "" },
		"name that is escaped": func(p *corev1.Pod) { p.Name = escape },
		"namespace":            func(p *corev1.Pod) { p.Namespace = "a/b" },
		"UID":                  func(p *corev1.Pod) { p.UID = shell },
		"long UID":             func(p *corev1.Pod) { p.UID = types.UID(strings.Repeat("a", 200)) },
		"label":                func(p *corev1.Pod) { p.Labels[escape] = "x" },
		"label value":          func(p *corev1.Pod) { p.Labels["app"] = shell },
		"annotation":           func(p *corev1.Pod) { p.Annotations[shell] = "x" },
		"container":            func(p *corev1.Pod) { p.Spec.Containers[0].Name = shell },
		"init container":       func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: escape}} },
		"ephemeral container": func(p *corev1.Pod) {
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{}}
		},
		"status": func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Name = "a b" },
		"node":   func(p *corev1.Pod) { p.Spec.NodeName = shell },
	} {
		if objectnames.CheckPod(pod(change)) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
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
