package scheduling

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// world is a worker in a test.
type world struct {
	nodes []*corev1.Node
	pods  []*corev1.Pod
}

// node adds a node of 4 CPUs with labels "key=value".
func (w *world) node(name string, pairs ...string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: set(pairs)}}
	node.Labels[corev1.LabelHostname] = name
	node.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("4"), "pods": resource.MustParse("110")}
	w.nodes = append(w.nodes, node)
	return node
}

// pod adds a Pod of 1 CPU in namespace "ns" that ends by itself.
func (w *world) pod(node string, pairs ...string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", len(w.pods)), Namespace: "ns", Labels: set(pairs)},
		Spec:       corev1.PodSpec{NodeName: node, RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{}}},
	}
	cpu(&pod.Spec, "1")
	w.pods = append(w.pods, pod)
	return pod
}

func cpu(spec *corev1.PodSpec, amount string) {
	spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(amount)}
}

func set(pairs []string) map[string]string {
	labels := map[string]string{}
	for _, p := range pairs {
		parsed, err := labelsOf(p)
		if err != nil {
			panic(err)
		}
		for key, value := range parsed {
			labels[key] = value
		}
	}
	return labels
}

func labelsOf(pair string) (labels.Set, error) { return labels.ConvertSelectorToLabelsMap(pair) }

// jobOf is a Job in namespace "ns" whose Pods take 1 CPU each.
func jobOf(change func(*corev1.PodTemplateSpec)) *Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "uid"}}
	template := &job.Spec.Template
	template.Labels = map[string]string{}
	template.Spec.Containers = []corev1.Container{{Name: "main"}}
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	cpu(&template.Spec, "1")
	change(template)
	return NewJob(job)
}

// judge asks for a number of Pods.
func (w *world) judge(j *Job, wanted int64) Answer {
	namespaces := map[string]*corev1.Namespace{"ns": namespace("ns", "team=red"), "other": namespace("other", "team=blue")}
	return j.Judge(NewSnapshot(w.nodes, w.pods, namespaces), wanted)
}

// namespace with labels, as an API server has it.
func namespace(name string, pairs ...string) *corev1.Namespace {
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: set(pairs)}}
	made.Labels[corev1.LabelMetadataName] = name
	return made
}

// expect compares what counts of an Answer: the verdict, how many fit now, and the first reason.
func expect(t *testing.T, a Answer, verdict Verdict, now int64, reason string) {
	t.Helper()
	first := ""
	if len(a.Reasons) > 0 {
		first = a.Reasons[0].Message
	}
	if a.Verdict != verdict || a.Now != now || first != reason {
		t.Errorf("got %v, %d now, %q; want %v, %d now, %q", a.Verdict, a.Now, first, verdict, now, reason)
	}
}
