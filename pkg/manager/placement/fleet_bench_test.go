package placement_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/manager/placement"
	"github.com/jobferry/jobferry/pkg/manager/placement/scheduling"
)

// fleet is 100 workers of 100 nodes in three zones, each with 30 Pods of 15 applications, of which a
// third is in the Job's namespace. One half runs services, the other Jobs of one Pod each.
func fleet() []placement.Cluster {
	clusters := make([]placement.Cluster, 100)
	for i := range clusters {
		clusters[i] = placement.Cluster{Name: fmt.Sprintf("worker-%d", i), Ready: true, Capacity: worker(100, 30)}
	}
	return clusters
}

func worker(nodes, podsPerNode int) *scheduling.Snapshot {
	var objects []*corev1.Node
	var pods []*corev1.Pod
	for n := range nodes {
		object := fleetNode(n)
		objects = append(objects, object)
		for i := range podsPerNode {
			pods = append(pods, fleetPod(object.Name, i))
		}
	}
	return scheduling.NewSnapshot(objects, pods, nil)
}

func fleetNode(n int) *corev1.Node {
	name := fmt.Sprintf("node-%d", n)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelHostname: name, "zone": fmt.Sprint(n % 3), "disk": "ssd", "kubernetes.io/os": "linux",
	}}}
	node.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("64"), "pods": resource.MustParse("110")}
	if n%10 == 0 {
		node.Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
	}
	return node
}

func fleetPod(node string, i int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Labels: map[string]string{
		"app": fmt.Sprintf("app-%d", i%15), "team": "red",
	}}}
	if i%3 > 0 {
		pod.Namespace = fmt.Sprintf("other-%d", i%5)
	}
	pod.Spec = oneCPU()
	pod.Spec.NodeName = node
	if i < 15 {
		pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
		return pod
	}
	for _, prefix := range []string{"", "batch.kubernetes.io/"} {
		pod.Labels[prefix+"job-name"] = fmt.Sprintf("%s-%d", node, i)
		pod.Labels[prefix+"controller-uid"] = fmt.Sprintf("9a1c7e52-0000-4000-%s-%d", node, i)
	}
	return pod
}

func oneCPU() corev1.PodSpec {
	requests := corev1.ResourceList{"cpu": resource.MustParse("1")}
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}},
	}
}

// question is a Job that is placed.
type question struct {
	name string
	// share of such Jobs among those of BenchmarkMix, in percent.
	share  int
	pods   int32
	change func(*corev1.PodTemplateSpec)
}

// wide is more Pods at once than any worker holds: the Job waits until one is idle.
const wide = 1 << 20

var questions = []question{
	{"plain", 50, 50, func(*corev1.PodTemplateSpec) {}},
	{"wider than all workers", 9, wide, func(*corev1.PodTemplateSpec) {}},
	{"selector", 20, 50, func(p *corev1.PodTemplateSpec) { p.Spec.NodeSelector = map[string]string{"disk": "ssd", "zone": "1"} }},
	{"spread", 6, 10, func(p *corev1.PodTemplateSpec) { spreadOver(p, "zone") }},
	{"spread of its own", 4, 10, func(p *corev1.PodTemplateSpec) {
		spreadOver(p, "zone")
		p.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels = map[string]string{"job-name": "job"}
	}},
	{"spread over nodes", 3, 50, func(p *corev1.PodTemplateSpec) { spreadOver(p, corev1.LabelHostname) }},
	{"spread over both", 3, 50, func(p *corev1.PodTemplateSpec) { spreadOver(p, "zone", corev1.LabelHostname) }},
	{"anti-affinity", 4, 50, func(p *corev1.PodTemplateSpec) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: alike(p, corev1.LabelHostname),
		}}
	}},
	{"affinity", 1, 50, func(p *corev1.PodTemplateSpec) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: alike(p, "zone"),
		}}
	}},
}

func spreadOver(p *corev1.PodTemplateSpec, keys ...string) {
	p.Labels["app"] = "app-0"
	for _, key := range keys {
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: 3, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "app-0"}},
		})
	}
}

func alike(p *corev1.PodTemplateSpec, key string) []corev1.PodAffinityTerm {
	p.Labels["app"] = "new"
	return []corev1.PodAffinityTerm{{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "new"}}}}
}

func (q *question) request() placement.Request {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "uid"}}
	job.Spec.Parallelism, job.Spec.Completions = ptr.To(q.pods), ptr.To(q.pods)
	job.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}, Spec: oneCPU()}
	q.change(&job.Spec.Template)
	return placement.Request{Job: job}
}

// BenchmarkFleet places one Job of each sort in 100 workers of 100 nodes.
func BenchmarkFleet(b *testing.B) {
	clusters := fleet()
	for _, q := range questions {
		b.Run(q.name, func(b *testing.B) {
			request := q.request()
			b.ReportAllocs()
			for b.Loop() {
				if d := placement.Place(request, clusters); (d.Cluster == "") != (q.pods == wide) {
					b.Fatal(d.Explain())
				}
			}
		})
	}
}

// BenchmarkMix places many Jobs in 100 workers of 100 nodes, one after the other, and says how long
// the median took, and one in a hundred.
func BenchmarkMix(b *testing.B) {
	clusters := fleet()
	var mix []placement.Request
	for _, q := range questions {
		for range q.share {
			mix = append(mix, q.request())
		}
	}
	var took []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		request := mix[len(took)*37%len(mix)]
		began := time.Now()
		placement.Place(request, clusters)
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2].Seconds()*1000, "ms-median")
	b.ReportMetric(took[len(took)*99/100].Seconds()*1000, "ms-p99")
}
