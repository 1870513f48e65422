package scheduling

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// ofOwnResources is a worker with Pods of low priority that don't end, each of which takes as many
// extended resources as a Pod may, which no other takes.
func ofOwnResources(pods int) *Snapshot {
	w := &world{}
	for i := range 10 {
		w.node(fmt.Sprint("n", i))
	}
	for i := range pods {
		pod := w.pod(fmt.Sprint("n", i%10), "app=other")
		pod.Spec.RestartPolicy, pod.Spec.Priority = corev1.RestartPolicyAlways, ptr.To[int32](-1)
		for k := range capacity.MaxOthers {
			pod.Spec.Containers[0].Resources.Requests[corev1.ResourceName(fmt.Sprintf("x/%d", i*capacity.MaxOthers+k))] = resource.MustParse("1")
		}
	}
	return NewSnapshot(w.nodes, w.pods, nil)
}

// What very many Pods take that have resources of their own costs no more for each than what few
// take, and counts as work.
func TestPodsOfOwnResources(t *testing.T) {
	for name, ask := range map[string]func(*Snapshot, *budget){
		"what lasts": func(s *Snapshot, b *budget) {
			quota := &corev1.ResourceQuota{Status: corev1.ResourceQuotaStatus{Hard: corev1.ResourceList{"pods": {}, "requests.x/7": {}}}}
			s.Admission = &Admission{Quotas: []*corev1.ResourceQuota{quota}}
			if sum := s.lastingIn("ns", b); sum.MilliCPU < 1000 || sum.Get("x/7") != 1 || len(sum.Others) > 2 {
				t.Errorf("%d of CPU, %v", sum.MilliCPU, sum.Others)
			}
		},
		"preemption": func(s *Snapshot, b *budget) {
			if with, _, changed := s.from(0, b); !changed || with.Nodes[0].Free.MilliCPU != 4000 || len(with.Nodes[0].Free.Others) > 0 {
				t.Errorf("%t, %+v", changed, with.Nodes[0].Free)
			}
		},
	} {
		cost := func(pods int) uint64 {
			s, b := ofOwnResources(pods), newBudget(mostWork, nil)
			cost := costtest.Of(func() { ask(s, b) })
			if spent := mostWork - b.left; spent < pods*takingWork*capacity.MaxOthers {
				t.Errorf("%s: %d Pods count as %d of work", name, pods, spent)
			}
			return cost / uint64(pods)
		}
		if few, many := cost(100), cost(3200); many > 2*few+64 {
			t.Errorf("%s: allocates %d bytes for each of 100 Pods, and %d for each of 3,200", name, few, many)
		}
	}
}

// Of a Job with very many sidecars, each with a resource of its own, few are read for quotas: each
// step of a sum would compare all that there were before.
func TestQuotasOfManySidecars(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}}
	for i := range 2000 {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{
			RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
			Resources:     corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceName(fmt.Sprintf("a/%05d", i)): resource.MustParse("1")}},
		})
	}
	r, read := quotaReadOf(pod), map[corev1.ResourceName]bool{}
	for i := range r.spec.InitContainers {
		for name := range r.spec.InitContainers[i].Resources.Requests {
			read[name] = true
		}
	}
	if len(read) != capacity.MaxOthers || !r.bestEffort || len(r.usage) != capacity.MaxOthers+2 || len(r.lacking) == 0 {
		t.Errorf("%d resources are read; %+v", len(read), r)
	}
}
