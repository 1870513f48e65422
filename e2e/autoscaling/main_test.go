package autoscaling_test

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

func TestMain(m *testing.M) {
	// One node for what isn't of these tests: a Pod of theirs doesn't fit there.
	small := []rig.Nodes{{CPU: "1"}}
	rigtest.Main(m,
		rig.Options{Name: ferrytest.HubName, Release: binaries.Hub(binaries.Current)},
		rig.Options{Name: "w1", Release: binaries.Worker(binaries.Current), Nodes: small},
		rig.Options{Name: "w2", Release: binaries.Worker(binaries.Current), Nodes: small},
	)
}

// poolLabel is what nodes of a pool have, by its name: Karpenter's, so that NodePools are about
// these.
const poolLabel = "karpenter.sh/nodepool"

// scene is two workers that add nodes, of which w1 is cheaper.
type scene struct {
	*ferrytest.Ferry
	pool   string
	w1, w2 *autoscaler
}

// open has autoscalers run, and the workers say what they can add.
func open(t *testing.T, most int) *scene {
	t.Helper()
	s := &scene{Ferry: ferrytest.For(t)}
	s.pool = s.NS
	s.w1 = autoscale(s.Context(), t, s.Cluster("w1"), poolLabel, s.pool, most)
	s.w2 = autoscale(s.Context(), t, s.Cluster("w2"), poolLabel, s.pool, most)
	return s
}

// template says in a WorkerCluster that so many nodes of the pool can be added.
func (s *scene) template(most int) string { return s.templateOf("grows", most) }

// templateOf is one with the name of a NodePool or node group.
func (s *scene) templateOf(name string, most int) string {
	return fmt.Sprintf(`{"nodeTemplates":[{"name":%q,"labels":{%q:%q},"allocatable":{"cpu":%q,"memory":"16Gi"},"maxNodes":%d}]}`,
		name, poolLabel, s.pool, nodeCPU, most)
}

// registers has both workers say what can be added.
func (s *scene) registers(autoscaling string) {
	s.Register("w1", "w2")
	for worker, price := range map[string]string{"w1": "1", "w2": "2"} {
		s.LeaveWorker(worker)
		s.SetWorker(worker, fmt.Sprintf(`{"capacity":"Autoscaled","cost":{"cpu":%q},"podStartTimeout":"%s","autoscaling":%s}`, price, startTimeout, autoscaling))
		s.WorkerUntil(worker, ferrytest.Observed)
	}
}

// submit submits a Job whose Pods take a node of the pool each.
func (s *scene) submit(name string, options ...rigtest.Option) {
	s.Submit(name, append(options, func(j *batchv1.Job) {
		spec := &j.Spec.Template.Spec
		spec.NodeSelector = map[string]string{poolLabel: s.pool}
		spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: quantity("3")}
	})...)
}

// endedAt waits until a Job has ended, and returns where.
func (s *scene) endedAt(name string) string {
	return ferrytest.ClusterOf(s.HubJobUntil(name, rigtest.Complete))
}
